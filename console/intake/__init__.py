"""The only door for outside text: frames in, clean facts out.

Strict cleaning for whatever names or acts (names, commands, arguments, paths, options), prose cleaning for
message bodies. Ids stay exactly as received: they are keys, and are cleaned where they are shown. A digest
is recomputed from the raw subject before anything is cleaned.
"""

from console.intake.door import ContactChange, Intake
from console.intake.events import event_fact

__all__ = ["ContactChange", "Intake", "event_fact"]
