"""``python -m plap``."""

from plap_command import main

main()
