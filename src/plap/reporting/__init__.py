"""Every page, picture and text table, drawn from plain values; one palette, one engine per medium.

Matplotlib draws picture files (``picture``, ``figures``), Jinja2 writes self-contained HTML pages with inline
SVG (``html_page``, ``svg_figures``), and Rich prints to the terminal (``terminal``). Whoever has something to
show fills in the content of a document (``fit_content``, ``table_content``); the modules of the same prefix
turn it into files and text.
"""
