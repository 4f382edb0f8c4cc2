import pytest
from machines import MACHINES, data_for


@pytest.fixture(params=list(MACHINES))
def machine(request):
    """(make, X, y) of each machine."""
    return MACHINES[request.param], *data_for(request.param)
