"""`python -m grammaton`: the same as the command `grammaton`."""

from __future__ import annotations

import sys

from grammaton.cli import main

sys.exit(main())
