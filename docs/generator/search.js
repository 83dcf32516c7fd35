// The search of the site, below `const pages = [[title, address, kind, summary, more words, often asked], ...]`: on its own page and in the box of every other.
const same = {high: ['large'], big: ['large'], low: ['small'], slow: ['small'], nan: ['finite'], inf: ['finite'],
  lr: ['learning rate'], lora: ['adapter'], checkpoint: ['weights'], batchnorm: ['statistics'], imbalance: ['unbalanced'],
  imbalanced: ['unbalanced'], plateau: ['stall'], stuck: ['stall'], falling: ['fall'], exploding: ['explode'],
  vanishing: ['vanish'], overfitting: ['overfit'], mask: ['leaks'], shuffle: ['noise'], init: ['initializ'],
  initialize: ['initializ'], batch: ['batches'], size: ['batches'], jupyter: ['notebook'], colab: ['notebook']};
const idle = new Set(('a an and are be can do does for get have how i in is it its me my not of on or should take the this to use '
  + 'what when which why will with work works').split(' '));
const first = {ailment: 3, question: 3, guide: 2, instrument: 1, API: -2};
const plain = text => ' ' + text.toLowerCase().replace(/[^a-z0-9.]+/g, ' ');
const rows = pages.map(([title, address, kind, summary, more, often]) => {
  const text = plain(title + ' ' + kind + ' ' + summary);
  return {title, address, name: plain(title), text: text + plain(more), weight: (first[kind] || 0) + 2 * often,
    long: text.split(' ').length};
});

// Places of the pages that have the most of the words, or all but one of them; the best first.
function ranked(asked) {
  const words = plain(asked).split(' ').filter(word => word && !idle.has(word));
  if (!words.length) return rows.map((_, place) => place);
  const scored = rows.map((row, place) => {
    const hits = words.filter(word => [word, ...(same[word] || [])].some(form => row.text.includes(' ' + form))).length;
    const named = words.filter(word => row.name.includes(' ' + word)).length;
    return {place, hits, score: 4 * hits + 2 * named + row.weight + 6 * hits / Math.sqrt(row.long)};
  });
  const most = Math.max(...scored.map(found => found.hits));
  return scored.filter(found => found.hits > 0 && found.hits >= most - (most > 1))
    .sort((a, b) => b.score - a.score || a.place - b.place).map(found => found.place);
}

const list = document.getElementById('found');
if (list) {
  const box = document.getElementById('q'), items = [...list.children];
  const show = () => {
    const found = ranked(box.value);
    for (const item of items) item.hidden = true;
    for (const place of found) { items[place].hidden = false; list.append(items[place]); }
    document.getElementById('count').textContent = found.length + (found.length === 1 ? ' page' : ' pages');
  };
  box.value = new URLSearchParams(location.search).get('q') || '';
  box.addEventListener('input', show);
  box.focus();
  show();
} else {
  const form = document.querySelector('.th-search'), box = form.querySelector('input');
  const root = form.getAttribute('action').replace('search.html', '');
  const live = form.appendChild(document.createElement('ul'));
  live.setAttribute('aria-label', 'Pages found');
  const show = () => {
    const found = box.value.trim().length > 1 ? ranked(box.value).slice(0, 8) : [];
    live.replaceChildren(...found.map(place => {
      const item = document.createElement('li'), link = item.appendChild(document.createElement('a'));
      link.href = root + rows[place].address;
      link.textContent = rows[place].title;
      return item;
    }));
  };
  box.addEventListener('input', show);
  form.addEventListener('keydown', event => { if (event.key === 'Escape') live.replaceChildren(); });
  show();
}
