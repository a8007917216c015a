"""Random node names: two adjectives and a bird, such as `amber-quiet-heron`.

There are about two million names; if one is taken, another is drawn.
"""

from random import Random

ADJECTIVES = (
    "agile amber ancient arctic auburn autumn bashful bold brave breezy bright brisk bronze "
    "calm candid careful cheerful clever cloudy coastal copper cosmic crimson curious dapper "
    "daring dawn deft distant dusky eager early earnest electric elegant ember fabled fearless "
    "fleet foggy fond frosty gallant gentle gilded glad golden graceful grand hardy hazel "
    "hidden honest humble indigo ivory jade jolly keen kind lively lone loyal lucid lunar "
    "mellow merry mighty misty modest mossy nimble noble northern olive opal patient pearly "
    "plucky polar proud quick quiet radiant rapid restless rosy ruby russet rustic sable sage "
    "scarlet serene sharp shy silent silver sleek snowy solar spry stately steady stellar "
    "stormy subtle sunny swift tawny tender thrifty tidal tranquil trusty twilight umber upbeat "
    "valiant velvet vernal violet vivid wandering warm western whimsical wild windy winter wise "
    "witty young zesty"
).split()
BIRDS = (
    "albatross avocet bittern bluebird bunting buzzard chough condor coot cormorant crane crow "
    "curlew dipper dove dunlin dunnock eagle egret eider falcon fieldfare finch flamingo fulmar "
    "gannet godwit goldcrest goose goshawk grebe grouse gull harrier heron hobby hoopoe ibis "
    "jackdaw jay kestrel kingfisher kite kittiwake knot lapwing lark linnet loon magpie mallard "
    "martin merlin moorhen nightingale nightjar nuthatch oriole osprey ostrich owl partridge "
    "pelican penguin petrel pheasant pigeon pintail pipit plover puffin quail raven redshank "
    "redstart robin rook ruff sanderling sandpiper shearwater shrike siskin skua snipe sparrow "
    "spoonbill starling stilt stonechat stork swallow swan swift teal tern thrush toucan "
    "turnstone twite vulture wagtail warbler waxwing wheatear whimbrel widgeon woodcock "
    "woodpecker wren"
).split()


def draw_name(random: Random) -> str:
    """Return a random name: two different adjectives and a bird, joined by hyphens."""
    first, second = random.sample(ADJECTIVES, 2)
    return f"{first}-{second}-{random.choice(BIRDS)}"
