import os, signal, time
import tests.swarm.test_faults as f
from tests.swarm.test_faults import *
OUT = float(os.environ.get("OUT", "22"))
def lose(part, site, flock, quiz):
    flock.hand_in(each=3)
    eventually(lambda: ungraded(quiz) & flock.acked and len(flock.acked) < flock.allowed, within_s=30, what="x")
    if part not in ("valkey", "postgres", "web"):
        return
    until = time.monotonic() + OUT
    last = None
    with site.launcher.log.open("a") as log: log.write(f"######## {part} goes away\n")
    while time.monotonic() < until:
        pid = site.pid_of(part)
        if pid and pid != last:
            os.kill(pid, signal.SIGKILL); last = pid
        time.sleep(.02)
    with site.launcher.log.open("a") as log: log.write(f"######## {part} may come back\n")
    t0 = time.monotonic()
    eventually(lambda: site.pid_of(part) not in (None, last), within_s=40, what="runs again")
    since = timezone.now()
    t1 = time.monotonic()
    try: eventually(lambda: is_caught_up(flock, quiz, since=since), within_s=90, what="work")
    finally:
     with site.launcher.log.open("a") as log: log.write(f"######## {part} back: {t1-t0:.1f} s until started, {time.monotonic()-t1:.1f} s until caught up\n")
f.lose = lose
