"""The time of a device, as `optimize` prices its program with all that fuses."""

from relax_egraph.base.parameters import instance, takes
from relax_egraph.extract import REFERENCE_PROFILE, Hints, Profile
from relax_egraph.optimize.run import run
from relax_egraph.optimize.session import OPTIONS, Session
from relax_egraph.shards.devices import DeviceProgram
from relax_egraph.shards.link import Link
from relax_egraph.shards.prices import prices_of_calls


@takes(
    program=instance("a DeviceProgram", DeviceProgram),
    link=instance("a Link", Link),
    hints=OPTIONS["hints"],
    profile=OPTIONS["profile"],
)
def simulated_seconds(
    program: DeviceProgram,
    link: Link,
    *,
    hints: Hints | None = None,
    profile: Profile | None = None,
) -> float:
    """The seconds of each device by the price model, after its program is optimized.

    Collectives cost what they do over `link`, and overlap with nothing: simulated, not measured.
    """
    prices = prices_of_calls(profile or REFERENCE_PROFILE, program.parts, link)
    session = Session(hints=hints, profile=profile, prices=prices)
    return run(program.module, session).cost
