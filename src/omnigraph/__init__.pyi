from omnigraph.api.branches import Branches as Branches
from omnigraph.api.graph import Graph as Graph
from omnigraph.api.open import init as init
from omnigraph.api.open import open as open
from omnigraph.api.options import OpenOptions as OpenOptions
from omnigraph.api.prepared import PreparedQuery as PreparedQuery
from omnigraph.api.receipts import MutationResult as MutationResult
from omnigraph.api.receipts import WriteResult as WriteResult
from omnigraph.api.result import Result as Result
from omnigraph.api.snapshot import Snapshot as Snapshot
from omnigraph.errors import AlreadyExistsError as AlreadyExistsError
from omnigraph.errors import ConflictError as ConflictError
from omnigraph.errors import ConstraintError as ConstraintError
from omnigraph.errors import FormatError as FormatError
from omnigraph.errors import GraphError as GraphError
from omnigraph.errors import InternalError as InternalError
from omnigraph.errors import InvalidRequestError as InvalidRequestError
from omnigraph.errors import LimitError as LimitError
from omnigraph.errors import NotFoundError as NotFoundError
from omnigraph.errors import OutcomeUnknownError as OutcomeUnknownError
from omnigraph.errors import ParseError as ParseError
from omnigraph.errors import PermissionDeniedError as PermissionDeniedError
from omnigraph.errors import PreconditionError as PreconditionError
from omnigraph.errors import UnavailableError as UnavailableError
from omnigraph.execution.engine import QueryLimits as QueryLimits
from omnigraph.execution.write_rows import Mode as Mode

__all__: list[str]
