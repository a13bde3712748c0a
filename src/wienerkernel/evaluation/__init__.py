"""How well a model describes its data: scores, plots, the HTML report and the interactive page."""
