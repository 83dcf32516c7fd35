"""PRESENT: readings and verdicts become terminal tables, figures and pages; nothing is measured or predicted here."""
