"""The report of an experiment: numbers as `report.json`, and a page that shows them."""
