"""BUILD: networks that a specification or a theorem writes down, and data with a known answer."""
