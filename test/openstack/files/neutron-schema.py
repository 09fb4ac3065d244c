# Creates Neutron's tables in the SQLite databases whose paths are the arguments.
import sys

import sqlalchemy
from neutron.db.migration.models import head

for path in sys.argv[1:]:
    head.get_metadata().create_all(sqlalchemy.create_engine("sqlite:///" + path))
