"""Drives the package `fleet` through all that it can do, and ends with an error where it gets something else than it should.

usage: fleet_client.py ENDPOINT MACHINE-ID, with the token, if one is needed, in FLEET_TOKEN. There are 101 units already.
"""

import os
import sys

import httplib2
from fleet.v1 import APIError, Client, Unit
from patience import eventually

NAME = "app@1.service"
FILE = "[Unit]\nDescription=App %i\n[Service]\nExecStart=/usr/bin/app\nExecStop=/usr/bin/app stop\n"


class Bearer(httplib2.Http):
    """Sends the token with each request."""

    def request(self, uri, method="GET", body=None, headers=None, **more):
        headers = dict(headers or {}, authorization="Bearer " + os.environ["FLEET_TOKEN"])
        return super().request(uri, method, body=body, headers=headers, **more)


def refused(code, message, call):
    """The call must fail with this code, and with a message that has this in it."""
    try:
        call()
    except APIError as error:
        assert (error.code, message in error.message) == (code, True), error
    else:
        raise AssertionError("not refused: " + message)


endpoint, machine_id = sys.argv[1:]
client = Client(endpoint, http=Bearer() if "FLEET_TOKEN" in os.environ else None)

[machine] = client.list_machines()
assert machine.id == machine_id and machine.primaryIP and machine.metadata == {}, machine

# Over two pages.
assert len({unit.name for unit in client.list_units()}) == 101
assert list(client.list_unit_states()) == []

refused(404, "unit does not exist", lambda: client.get_unit(NAME))
refused(404, "unit does not exist", lambda: client.destroy_unit(NAME))
refused(409, "options", lambda: client.create_unit(NAME, Unit(desired_state="loaded")))
refused(400, "", lambda: client.create_unit("app", Unit(from_string=FILE)))
refused(400, "", lambda: client.create_unit("app@.service", Unit(from_string=FILE)))

unit = client.create_unit(NAME, Unit(desired_state="loaded", from_string=FILE))
assert (unit.name, unit.desiredState) == (NAME, "loaded"), unit
assert [option["value"] for option in unit.options] == ["App %i", "/usr/bin/app", "/usr/bin/app stop"], unit


def is_in(state):
    found = client.get_unit(NAME)
    return found.currentState == state and found


assert eventually("loaded", lambda: is_in("loaded")).machineID == machine_id
client.set_unit_desired_state(NAME, "launched")
eventually("launched", lambda: is_in("launched"))
# No later: a launched unit has a state.
[state] = client.list_unit_states(unit_name=NAME)
assert (state.name, state.machineID) == (NAME, machine_id), state
assert (state.systemdLoadState, state.systemdActiveState, state.systemdSubState) == ("loaded", "active", "running"), state
assert len(state.hash) == 40, state
assert [it.name for it in client.list_unit_states(machine_id=machine_id)] == [NAME]
assert list(client.list_unit_states(machine_id="f" * 32)) == []
assert len(list(client.list_units())) == 102

unit = client.get_unit(NAME)
assert unit.set_desired_state("inactive") == "inactive"
eventually("inactive", lambda: is_in("inactive"))
assert unit.destroy() is True
refused(404, "unit does not exist", lambda: client.get_unit(NAME))
assert len(list(client.list_units())) == 101
