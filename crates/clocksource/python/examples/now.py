"""python3 now.py static:5ms"""

import sys

from timeball_clock import Clock, ClockError

try:
    clock = Clock(sys.argv[1] if len(sys.argv) > 1 else "auto")
except ClockError as error:
    sys.exit(str(error))
with clock:
    print(clock.describe())
    earliest, latest = clock.now()
    print(f"error {(latest - earliest) // 2} ns")
    print(f"before waiting: after(latest) = {clock.after(latest)}")
    clock.wait_until_after(latest)
    print(f"waited, after(latest) = {clock.after(latest)}, status {clock.read().status}")
