# Creates Neutron's tables in the SQLite database whose path is the argument.
import sys

import sqlalchemy
from neutron.db.migration.models import head

head.get_metadata().create_all(sqlalchemy.create_engine("sqlite:///" + sys.argv[1]))
