"""`python -m agl`."""

from agl.cli.main import main

raise SystemExit(main())
