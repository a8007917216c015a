"""Every message of the node socket, as msgspec structs.

A message is one JSON object whose `type` names its struct. A node's message has an `id` that the
node chose; the reply repeats it as `reply_to`. A server message whose `reply_to` is null is a
refusal or a doorbell. A doorbell announces a change that can also be requested, because doorbells
may be lost.

The server refuses messages with unknown fields, so that mistakes are noticed. A client ignores
unknown fields, so that a newer server can send fields that an older client does not know.
"""

# Every public name of the four modules is one of this package too.
from swarm_protocol.messages.fields import *  # noqa: F403
from swarm_protocol.messages.from_node import *  # noqa: F403
from swarm_protocol.messages.from_server import *  # noqa: F403
from swarm_protocol.messages.rollouts import *  # noqa: F403
