"""One way of drawing for pages, notebooks, the dashboard and the atlas: inline SVG whose colors the style sheet gives."""
