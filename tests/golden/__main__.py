"""Write the numbers of cases that are new or have another version: python -m tests.golden"""

import sys
import tempfile
from pathlib import Path

from tests.golden.values import write

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        sys.exit("\n".join(write(Path(folder))) or 0)
