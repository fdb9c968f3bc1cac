"""Every bound in the product, named, with its unit last."""

# Publishing: a writer that loses the race for a log entry tries again this often.
PUBLISH_ATTEMPTS_MAX = 64
PUBLISH_ATTEMPTS_EAGER = 4  # these follow each other at once: the rebase between them is wait enough
PUBLISH_BACKOFF_MS_MIN = 2
PUBLISH_BACKOFF_MS_MAX = 500
REDO_ATTEMPTS_MAX = 32  # running a whole operation again because what it read has changed
# A write that was overtaken so often asks other processes to wait, for a few times as long as it takes.
STARVED_AFTER_LOSSES = 3
STARVED_PAUSE_ATTEMPTS = 4
STARVED_PAUSE_S_MIN = 2.0
STARVED_PAUSE_S_MAX = 300.0

# The store: transient errors only, never a conditional put whose answer was lost.
STORE_RETRY_ATTEMPTS_MAX = 5
STORE_RETRY_BACKOFF_MS_MIN = 20
STORE_RETRY_BACKOFF_MS_MAX = 2_000
LOCAL_READ_BYTES = 1024**2
STORE_LIST_PAGE_KEYS_MAX = 1_000

# The log.
HEAD_LISTED_FIRST = 8
CHECKPOINT_ENTRIES = 256
HINT_EVERY_ENTRIES = 32
NAMES_REMEMBERED_MAX = 4_096
MAPS_REMEMBERED_MAX = 4  # maps of tables whose spelling is remembered, for branches that begin with one of them
# Smaller ones are spelled out each time: that is quicker than to look for them.
MAPS_SPELLED_OUT_TYPES_MAX = 16
NAME_SEGMENT_BYTES_MAX = 200  # file systems take 255, and a temporary name adds a few
WHOLE_MAP_TYPES_MAX = 200
WHOLE_MAP_EVERY_ENTRIES = 32
FOOTPRINT_TOKENS_MAX = 200_000
TOKENS_AT_ONCE_MIN = 64  # fewer are hashed one by one
IDEMPOTENCY_KEY_BYTES_MAX = 1_024
INLINE_CHANGE_IDS_MAX = 256
INLINE_FOOTPRINT_TOKENS_MAX = 512

# Checksums of files. A record names those of the files its commit adds, unless they are very many.
RECORDED_DIGESTS_MAX = 1_024
DIGESTS_REMEMBERED_MAX = 4_096
# As many bytes are read by the thread that commits; more by several.
DIGESTS_IN_TURN_BYTES_MAX = 8 * 1024 * 1024
DIGEST_THREADS = 4
DIGEST_READ_BYTES = 1024 * 1024
# How far back upkeep looks for checksums in records before it reads the files themselves.
SEALED_FROM_ENTRIES_MAX = 2_048

# Intents.
INTENT_ROWS_MIN = 10_000
INTENT_BYTES_MIN = 8 * 1024**2
INTENT_HEARTBEAT_S = 10.0
INTENT_STALE_S = 60.0
# How far the times may be off that one store gives to two of its objects, where it has several machines.
STORE_CLOCK_OFF_S = 300.0
COMMIT_TIME_AHEAD_S_MAX = 300.0  # how far the time of a commit may be ahead of the store's own clock
CORRECTED_TIMES_MAX = 256  # corrected commit times that a record carries on; of more entries, some share one
# How far the clocks of two hosts may differ where an entry of one is looked for by the time of another.
CLOCKS_APART_MAX_S = 86_400

# Tables.
STAGE_THREADS_MAX = 8
# So little, on local disk, is staged one table after the other.
STAGE_IN_TURN_TABLES_MAX = 4
STAGE_IN_TURN_ROWS_MAX = 1_024
OPEN_TABLES_MAX = 512
SMALL_FRAGMENT_ROWS_MAX = 65_536
INDEX_CACHE_BYTES_MAX = 1024**3
METADATA_CACHE_BYTES_MAX = 256 * 1024**2
ID_FILTER_IDS_MAX = 1_000  # ids looked up with one filter; more are looked up in several, or by one pass over the table
# A pass over the table beats lookups in the index once this share of its rows is requested.
ID_LOOKUP_ROWS_SHARE_MAX = 0.05
ID_PASS_ROWS_MAX = 1_048_576
# Effects of staged versions kept in memory for rebasing: how many, and the most rows one may touch.
STAGED_EFFECTS_MAX = 256
STAGED_EFFECT_ROWS_MAX = 20_000
# What a write did to rows is handed on, to the in-memory row index, up to this many rows.
WRITTEN_ROWS_MAX = 1_024
# Pending rows in so few bytes of buffers are not counted exactly, which takes long for one row.
PENDING_BYTES_NOT_COUNTED_MAX = 64 * 1024
FOUND_ONE_BY_ONE_MAX = 64  # rows of one text that are looked at one by one; more in passes over arrays
# Rows that a write looks up one by one, in the in-memory row index; more are found by a pass over the table.
FOUND_ROWS_MAX = 256
FRAGMENT_DEAD_SHARE_MAX = 0.5  # a large fragment is rewritten once this share of its rows is deleted
VECTOR_INDEX_ROWS_MIN = 256  # fewer vectors than this are compared one by one; a code book cannot be learnt from fewer
# Fewer texts than this are looked through one by one: it takes milliseconds, and an index over their parts a second.
PARTS_INDEX_ROWS_MIN = 20_000
VECTOR_PARTITION_ROWS = 4_096
VECTOR_PARTITIONS_MAX = 4_096
VECTOR_REFINE_FACTOR = 10

# Local disk: how often a put makes its folder again when another process removes it.
LOCAL_PUT_ATTEMPTS_MAX = 16
SYNC_ONE_BY_ONE_MAX = 8  # more files than this are made durable by syncing the whole file system once
# Remote stores: a request that takes longer counts as unanswered.
STORE_CONNECT_TIMEOUT_S = 5.0
STORE_REQUEST_TIMEOUT_S = 30.0
# The external store: how long a request may wait for others.
EXTERNAL_WAIT_S = 10.0

# The languages.
LANGUAGE_TEXT_BYTES_MAX = 8 * 1024**2
LANGUAGE_NESTING_MAX = 100
REPORT_LINE_CHARACTERS_MAX = 120
REPORT_TOKEN_CHARACTERS_MAX = 40
# Query texts: levels of blocks and parentheses, and arithmetic operators in one expression.
QUERY_NESTING_MAX = 50
EXPRESSION_OPERATORS_MAX = 64
# Compiled queries kept, and schemas whose digest is remembered.
COMPILED_QUERIES_MAX = 1_024
SCHEMA_DIGESTS_MAX = 64
# Texts that differ in their strings only share a plan, up to this length and so many strings.
LIFTED_TEXT_CHARACTERS_MAX = 20_000
LIFTED_STRINGS_MAX = 8
HINT_NAMES_MAX = 1_000
VECTOR_DIMENSION_MAX = 2_147_483_647

assert PUBLISH_BACKOFF_MS_MIN < PUBLISH_BACKOFF_MS_MAX
assert PUBLISH_ATTEMPTS_MAX > 1
assert INTENT_HEARTBEAT_S * 3 <= INTENT_STALE_S

# Rows on their way in: rules of schemas kept at hand; bytes of blobs in one write.
SCHEMA_RULES_MAX = 64
BLOB_INPUT_BYTES_MAX = 32 * 1024**2
BLOB_RANGE_BYTES_MAX = 4 * 1024**2  # bytes of a blob that are read at once
BLOB_URI_BYTES_MAX = 65_536  # the address of a blob that lies elsewhere
BLOB_REFERENCES_MAX = 8_192  # cells of one write that hold such an address
BLOB_PROBES_AT_ONCE = 8  # blobs elsewhere that are looked at or copied at once
BLOB_SOURCE_TIMEOUT_S = 30.0  # how long a web server may be silent while a blob that lies there is read

# Queries in process. Rows are numbered with 32 bits; numbering starts over when rows that are gone exceed this share.
ORDINALS_MAX = 2**31 - 1
ORDINAL_HOLES_SHARE_MAX = 0.5
ORDINAL_HOLES_ALLOWED = 1_000  # in any table, however small
ORDINAL_SPACES_MAX = 4  # ways of numbering one table's rows: branches that have little in common have one each
QUERY_CACHE_BYTES_MAX = 2 * 1024**3  # bytes of columns and adjacency kept for the next query, of each graph's engine
QUERY_MEMORY_BYTES_MAX = 1024**3  # bytes that the rows of one query may take while it runs, its result included
QUERY_BATCH_ROWS = 131_072  # rows that operators hand on at once
# Smaller tables are read whole, whatever the query; of larger ones, few rows are looked up where they lie.
READ_WHOLE_ROWS_MAX = 100_000
LOOKUP_ROWS_MAX = 10_000
NEAR_ROWS_MAX = 10_000  # what lacks fewer rows than this of a version is extended rather than passed over
REMEMBERED_FRAGMENT_ROWS_MAX = 1_000  # such fragments are read with all their columns at once
# Where rows are, for small writes: rows that came and went since a version in memory; such versions of one table, and
# tables; and the part of the memory for columns that one column may take for this.
FINDER_CHANGES_MAX = 4_096
FINDER_LINES_MAX = 4
FINDER_TABLES_MAX = 1_024
FINDER_COLUMN_SHARE_MAX = 0.25
CSR_SPLICED_NODES_MAX = 4_096  # adjacency: a change of more nodes is applied by sorting all edges again
CSR_PATCHED_NODES_MAX = 16_384  # nodes whose edges lie apart from the others; more are laid out in order again
ADJACENCY_VERSIONS_MAX = 16  # versions of one edge type whose adjacency is kept; they share all but what differs
REACH_MARKS_BYTES_MAX = 8 * 1024**2  # marks of nodes seen, one byte for each node and start of a search
LOOKUP_NODES_MAX = 256  # nodes whose neighbours are looked up in the edge table, where adjacency is not in memory
WALK_ROWS_MAX = 65_536  # rows of a walk; more are left to operators, which work in batches and count what they hold
GROUPS_IN_PLACE_MAX = 2**22  # groups counted in an array as long as all values there are; more are not
# Adjacency beside the graph: of edge tables from this size on, in files of about so many edges; written again after
# this share of the edges has come or gone.
ADJACENCY_FILE_EDGES_MIN = 100_000
ADJACENCY_CHUNK_EDGES = 131_072
ADJACENCY_STALE_SHARE = 0.25

# Spark: which Java it runs on; how long its process may take to answer, to start, and to end with its classes kept.
JAVA_MAJOR_MIN = 17
JAVA_ANSWER_S_MAX = 30.0
SPARK_START_S_MAX = 120.0
SPARK_END_S_MAX = 60.0
SPARK_CANCEL_EVERY_S = 0.2  # how often abandoned Spark jobs are cancelled again until they have ended
# Spark refuses a smaller heap; a larger one than the first share of the machine's memory is left to Python's workers.
SPARK_MEMORY_BYTES_MIN = 512 * 1024**2
SPARK_MEMORY_SHARE = 0.3
SPARK_MEMORY_BYTES_USUAL_MAX = 8 * 1024**3
SPARK_SHUFFLE_PARTITIONS_MIN = 8
# Export: tables up to this size are sorted whole, larger ones by the addresses of their rows; what is written at once.
EXPORT_SORT_BYTES_MAX = 256 * 1024**2
EXPORT_BATCH_BYTES = 16 * 1024**2
EXPORT_BATCH_ROWS_MAX = 65_536
# Tasks on Spark: graphs whose tables one worker keeps open; rows that one task reads of a table.
LOCATIONS_OPEN_MAX = 8
SPARK_TASK_ROWS = 1_000_000
# Tables up to so many rows are read in this process by a query on Spark, and sent along with its plan.
SPARK_QUERY_LOCAL_ROWS = 10_000
# Rows written through Spark's own `df.write`: up to this size on disk one process loads them, more a Spark of its own.
FORMAT_WRITE_LOCAL_BYTES_MAX = 256 * 1024**2
# Analytics: vertices whose state one process holds; edges of a block; up to how many edges are worked on in one place.
ANALYTICS_VERTICES_MAX = 2**31 - 1
ANALYTICS_BLOCK_EDGES = 4_000_000
ANALYTICS_NEAR_EDGES_MAX = 4_000_000

# History: marks of branches that one listing tidies away; entries read ahead where a log is walked down.
BRANCH_MARKS_TIDIED_MAX = 64
HISTORY_READ_AHEAD_ENTRIES = 32
# The change feed: characters of a token; changes and bytes of a page, commits of a poll.
CHANGE_TOKEN_CHARACTERS_MAX = 4_096
CHANGE_PAGE_CHANGES = 1_000
CHANGE_PAGE_CHANGES_MAX = 8_192
CHANGE_PAGE_BYTES = 4 * 1024**2
CHANGE_PAGE_BYTES_MAX = 32 * 1024**2
CHANGE_POLL_COMMITS = 128
CHANGE_POLL_COMMITS_MAX = 512
# Changes of more rows than this are read page by page, by their ids, and not all at once.
CHANGE_ROWS_AT_ONCE_MAX = 20_000

# Upkeep. Of the tail, a fragment is rewritten along with smaller ones unless it has more than so many times their rows.
TAIL_GROWTH_MAX = 4
TAIL_FRAGMENTS_MAX = 48  # an open graph compacts the tail of a table once writes have left so many small fragments
# Segments of an index; more are made into one, by rebuilding the index of a smaller table.
INDEX_SEGMENTS_MAX = 4
INDEX_REBUILT_ROWS_MAX = 100_000
# Numbers of fragments that a compaction leaves to writers who publish meanwhile, and the highest it gives.
FRAGMENT_NUMBERS_LEFT_FREE = 1_024
FRAGMENT_NUMBER_MAX = 2**31

# Differences: of a fragment that loses a greater share of its rows, all are read instead of one after the other.
TAKEN_ROWS_SHARE_MAX = 0.05
# So many rows by address are worth opening a version of a table on local disk once more, as what is fastest for them.
TAKEN_APART_ROWS_MIN = 32
# So many rows that differ are counted a column at a time, until each is known to differ; more are read whole.
COUNTED_ROWS_MAX = 10_000
DELETIONS_READ_MAX = 100_000  # a longer deletion vector is read by a scan of the rows that are left
# Merge: entries of a log read at once while a common ancestor is looked for; resolutions a commit lists by name.
ANCESTORS_READ_AT_ONCE = 64
# So many of them, and where the log was folded they come in whole checkpoints.
ANCESTORS_READ_BEFORE_CHECKPOINTS = 8
MERGE_RESOLUTIONS_LISTED_MAX = 1_000
# Several common ancestors, as criss-cross merges leave them, are compared with those that they have in common in turn,
# and these likewise, so many times; what is still undecided then is a conflict where both sides differ.
MERGE_BASE_LEVELS = 4
CRISS_CROSS_LINES_MAX = 1_000  # in so many lines with merges a sweep looks for such ancestors

# Pruning. Commits younger than this keep their data, marked or not.
PROTECTION_WINDOW_S = 600.0
LOG_CUT_S = 60.0  # a log entry is cut away only after it has been there for so long: a courtesy to readers
# Entries read to find out how old the oldest are; then the floor is placed lower than it could be.
PRUNE_PROBES_MAX = 40
# A precondition on a commit or a table version is looked for behind so many entries, of commits that moved no content.
LAYOUTS_LOOKED_THROUGH_MAX = 64
# Times of marked entries, and entries marked one by one, that a record carries on.
PRUNED_AGES_MAX = 16
PRUNED_SINGLE_MAX = 256
HEAD_LOOKS_MAX = 16  # attempts to read a head that keeps vanishing
# Sweeping: files younger than this stay, unless the caller says otherwise; files deleted at once.
SWEEP_GRACE_S = 600.0
SWEEP_BATCH_FILES = 500
# Of log entries and table versions a pass of maintenance looks at about so many, to see whether they are whole.
MAINTAIN_VERIFY_READS_MAX = 2_000
IDEMPOTENCY_KEYS_KEPT_S = 86_400.0  # the note of an idempotency key outlives the pruning of its commit by this
# Frames laid down beside the graph by a job: no intent names them, so they stay longer than jobs take.
SPILL_KEPT_S = 7 * 86_400.0
# A task writes the rows of a frame down as files of about this size, each held in memory until it is whole.
SPILL_FILE_BYTES = 32 * 1024**2
LEASE_S_MAX = 7 * 86_400.0  # a lease is good for at most this long without being renewed

# Loading files. A task reads about one piece of a file, in blocks; lines and their commas and brackets have bounds.
LOAD_PIECE_BYTES = 32 * 1024**2
LOAD_PIECE_BYTES_MIN = 1024**2
LOAD_BLOCK_BYTES = 8 * 1024**2
LOAD_TABLE_ROWS = 131_072
LOAD_REMOTE_READ_BYTES = 1024**2
LOAD_LINE_BYTES_MAX = 32 * 1024**2
LOAD_LINE_SLOTS_MAX = 131_072
LOAD_FLUSH_BYTES = 64 * 1024**2  # rows held before they are written, of one type in one task
# Lines that are read one by one where some of them are not as they should be; more are halved first.
LOAD_LINES_ONE_BY_ONE_MAX = 64
LOAD_REJECTS_MAX = 1_000_000  # records put aside in one load
# Smaller loads run in the driver.
LOAD_NEAR_BYTES = 4 * 1024**2
# A task scans at most so many rows to validate them; a load is validated by so many tasks, of so many rows at least.
LOAD_LOOK_ROWS = 1_000_000
LOAD_SCAN_TASKS = 16
LOAD_SCAN_ROWS_MIN = 100_000
LOAD_PROGRESS_S = 0.25
LOAD_CHANGED_IDS_MAX = 2_000_000  # ids of changes that are written down; of more, only their number

# --- search -----------------------------------------------------------------------------------------------------------
# Texts whose words are found at once, when an index over words is made.
SEARCH_TEXTS_AT_ONCE = 50_000
# Misspellings of one word that `fuzzy` looks for, where a query does not say, and at most.
FUZZY_EDITS_DEFAULT = 2
FUZZY_EDITS_MAX = 8
# Different words that one search looks for, and those it looks for misspelled, with the letters each may have.
SEARCH_WORDS_MAX = 4_096
FUZZY_WORDS_MAX = 256
FUZZY_WORD_LETTERS_MAX = 256
# Cells of a vector index that a search looks into: at least so many, and at least this share of them.
VECTOR_CELLS_LOOKED_INTO = 64
VECTOR_CELLS_SHARE = 1 / 16
# Bytes of vectors that are compared at once, where they are more than the memory for columns has room for.
VECTOR_PIECE_BYTES = 64 * 1024**2
# Indexes over words kept beside the graph: from how many texts on, and which share of new ones is worth a new file.
WORDS_FILE_TEXTS_MIN = 20_000
WORDS_STALE_SHARE = 0.25
# The share of the memory for columns that one column of vectors may take; larger ones stay in their index.
VECTOR_COLUMN_SHARE_MAX = 0.5

# --- large diffs and sweeps -------------------------------------------------------------------------------------------
# A type whose differing fragments are larger than this on disk is compared on Spark, unless the caller says where.
DIFF_LOCAL_BYTES_MAX = 512 * 1024**2
# On Spark: what a task reads, rows it sends at once, and what a task that compares is to get.
DIFF_TASK_BYTES = 64 * 1024**2
DIFF_BLOCK_ROWS = 131_072
DIFF_SHARE_BYTES = 128 * 1024**2
# A table whose fragments to be compacted are larger than this on disk is compacted on Spark, unless the caller says
# where; and the rows of which a task makes one fragment.
COMPACT_LOCAL_BYTES_MAX = 1024**3
COMPACT_TASK_ROWS = 1024 * 1024
# A graph with more files is listed on Spark, and more versions are looked through there.
SWEEP_LOCAL_FILES_MAX = 200_000
SWEEP_LOCAL_VERSIONS_MAX = 10_000
SWEEP_TASK_VERSIONS = 500  # versions of tables that one task looks through

# --- neighbourhoods, and answers to agents ----------------------------------------------------------------------------
# Nodes around one node: how many are returned, by default and at most (one filter names them all), and how far away.
NEIGHBOURHOOD_NODES = 100
NEIGHBOURHOOD_NODES_MAX = 1_000
NEIGHBOURHOOD_DEPTH_MAX = 4
# One answer to an agent: rows or changes by default and at most, and the bytes of its JSON.
AGENT_ROWS = 100
AGENT_ROWS_MAX = 1_000
AGENT_BYTES_MAX = 256 * 1024
# How long one of its queries may run, and the properties that one search looks through.
AGENT_QUERY_S_MAX = 60.0
AGENT_SEARCHED_PROPERTIES_MAX = 64
# What is drawn: matches or changes at most, commits of a branch, branches and tags of a history.
DRAWING_MAX = 5_000
DRAWN_COMMITS = 200
DRAWN_BRANCHES_MAX = 50
DRAWN_TAGS_MAX = 1_000
# Completion: the text before a word, and the words that are offered.
COMPLETED_TEXT_MAX = 100_000
COMPLETIONS_MAX = 50

assert NEIGHBOURHOOD_NODES_MAX <= ID_FILTER_IDS_MAX

# Rows of a result that a notebook shows.
HTML_ROWS_MAX = 50

# --- policies and clusters --------------------------------------------------------------------------------------------
# A policy, its tests or a cluster's configuration: characters of the file, and how deep its values lie in each other.
YAML_CHARACTERS_MAX = 4 * 1024**2
YAML_DEPTH_MAX = 32
POLICY_DECISIONS_KEPT = 4_096  # decisions of a policy that are remembered
CLUSTER_PUT_ATTEMPTS_MAX = 5  # tries to read or put one of a cluster's own documents while others change them
# How often the holder of a cluster's lock shows that it lives, and after how long without that the next one takes it;
# a lock whose holder shows nothing, of an older release, counts for an hour.
CLUSTER_LOCK_HEARTBEAT_S = 10.0
CLUSTER_LOCK_STALE_S = 60.0
CLUSTER_LOCK_SILENT_S = 3_600.0
assert CLUSTER_LOCK_HEARTBEAT_S * 3 <= CLUSTER_LOCK_STALE_S < CLUSTER_LOCK_SILENT_S
CLUSTER_READS_AT_ONCE = 8  # stored queries and policies of a cluster that are read at once
# States of a cluster's ledger that are kept, and in it notes of what was finished after a death.
CLUSTER_REVISIONS_KEPT = 16
CLUSTER_RECOVERIES_KEPT = 100

# --- the server -------------------------------------------------------------------------------------------------------
# Bodies of requests: bytes of most and of those that bring rows, how long one may take to come, how deep JSON nests.
SERVER_BODY_BYTES_MAX = 1024**2
SERVER_LOAD_BODY_BYTES_MAX = 32 * 1024**2
SERVER_BODY_S_MAX = 30.0
SERVER_JSON_DEPTH_MAX = 64
# What one actor may have in progress in a process: writes and exports, bytes of their bodies, calls of any kind with
# those that wait for their turn; and what all together may. After how long those who have too much may come again.
SERVER_ACTOR_REQUESTS_MAX = 16
SERVER_ACTOR_BYTES_MAX = 4 * 1024**3
SERVER_ACTOR_CALLS_MAX = 128
SERVER_REQUESTS_MAX = 512
SERVER_RETRY_AFTER_S = 60
# Of threads and of memory that all callers share, what one actor may have, where there can be several.
SERVER_ACTOR_SHARE = 0.75
# Calls that run at once in a process; the others wait for their turn. Beside those, streams that read what they send.
SERVER_THREADS_MAX = 32
SERVER_STREAM_THREADS_MAX = 8
# One query: bytes of rows while it runs, how long that may be, and rows and bytes that are put into JSON at once.
SERVER_QUERY_BYTES_MAX = 512 * 1024**2
SERVER_QUERY_S_MAX = 60.0
SERVER_ROWS_AT_ONCE = 4_096
SERVER_ROWS_BYTES_AT_ONCE = 8 * 1024**2
SERVER_QUERIES_BYTES_MAX = 2 * 1024**3  # all queries of a process, while they run and until small results are sent
# What a process holds of all callers' bodies while they are dealt with, and of results while they are sent.
SERVER_BODIES_BYTES_MAX = 512 * 1024**2
SERVER_RESULTS_BYTES_MAX = 1024**3
SERVER_COMMITS_MAX = 10_000  # commits that one answer lists; the others are on the next page
# Streams: bytes sent at once, how many run at once in a process, how long one waits for its turn, and for its reader.
SERVER_STREAM_CHUNK_BYTES = 65_536
SERVER_STREAMS_MAX = 8
SERVER_STREAM_WAIT_S = 0.25
SERVER_STREAM_STALL_S = 60.0
SERVER_HEAD_BYTES_MAX = 64 * 1024  # largest request head (request line and headers)
SERVER_STOP_S_MAX = 30.0  # how long a server that stops waits for requests in progress

# --- the client -------------------------------------------------------------------------------------------------------
# How long connecting may take, how long a server may be silent within an answer, how long an idle connection is kept.
CLIENT_CONNECT_S_MAX = 10.0
CLIENT_ANSWER_S_MAX = 300.0
CLIENT_KEEPALIVE_S = 3.0
# For how long a request is sent again and again, and the pauses between.
CLIENT_PATIENCE_S = 30.0
CLIENT_BACKOFF_MS_MIN = 50
CLIENT_BACKOFF_MS_MAX = 2_000
CLIENT_PAGE_CHANGES = 1_000  # rows and changes that are requested at once where many are read
