# Completion of omnigraph.
_omnigraph() {
  local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" path="" words="" word i skip=0
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="${COMP_WORDS[i]}"
    if [ $skip = 1 ]; then skip=0; continue; fi
    case "$word" in
      --store|--server|--cluster|--graph|--profile|--as) skip=1 ;;
      -*) ;;
      *) case "$path" in "") path="$word" ;; blob|branch|changes|cluster|commit|graphs|policy|profile|queries|schema|tag|token|viz) path="$path $word" ;; esac ;;
    esac
  done
  case "$path|$prev" in
    "load|--mode") words="overwrite append merge" ;;
    "load|--format") words="jsonl csv parquet" ;;
    "load|--engine") words="spark local" ;;
    "export|--format") words="jsonl parquet csv graphml" ;;
    "query|--engine") words="auto local spark" ;;
    "query|--nodes") words="id object" ;;
    "query|--format") words="table kv csv jsonl json" ;;
    "explain|--engine") words="auto local spark" ;;
    "branch merge|--by") words="row property" ;;
    "branch merge|--prefer") words="source target" ;;
    "diff|--engine") words="auto local spark" ;;
    "sweep|--engine") words="auto local spark" ;;
    "maintain|--verify") words="some all none" ;;
    "alias|--format") words="table kv csv jsonl json" ;;
    *) case "$path" in
      "") words="init load export blob query mutate explain lint branch diff tag commit changes snapshot schema revert blame log stats viz analytics spark-sql optimize prune sweep cleanup verify repair maintain shell mcp cluster policy queries demo graphs alias embed login logout profile token completion version --help --version" ;;
      "blob") words="get stat" ;;
      "branch") words="create list delete merge" ;;
      "changes") words="poll baseline" ;;
      "cluster") words="validate import plan apply status refresh approve force-unlock" ;;
      "commit") words="list show changes" ;;
      "graphs") words="list" ;;
      "policy") words="validate test explain" ;;
      "profile") words="list show" ;;
      "queries") words="validate list" ;;
      "schema") words="show plan apply" ;;
      "tag") words="create list show delete" ;;
      "token") words="create list revoke" ;;
      "viz") words="schema query diff history" ;;
      "init") words="--schema --force --json --quiet --debug -v --version -h --help" ;;
      "load") words="--data --mode --branch --from --type --edge --from-column --to-column --format --rejects --max-rejects --dry-run --prune-previous --engine --master --spark-conf --json --store --server --graph --profile --as --yes --quiet --debug -v --version -h --help" ;;
      "export") words="--branch --commit --tag --at --number --type --format --out --files --json --store --server --graph --profile --as --debug -v --version -h --help" ;;
      "blob get") words="--branch --snapshot --uri --offset --length --out --store --server --graph --profile --debug -v --version -h --help" ;;
      "blob stat") words="--branch --snapshot --uri --json --store --server --graph --profile --debug -v --version -h --help" ;;
      "query") words="--query -e --query-string --params --params-file --branch --snapshot --tag --at --number --engine --nodes --format --json --store --server --graph --profile --debug -v --version -h --help" ;;
      "mutate") words="--query -e --query-string --params --params-file --branch --if-commit --message --idempotency-key --prune-previous --json --store --server --graph --profile --as --yes --quiet --debug -v --version -h --help" ;;
      "explain") words="--query -e --query-string --params --params-file --branch --engine --json --store --server --graph --profile --debug -v --version -h --help" ;;
      "lint") words="--query --schema --json --store --cluster --graph --profile --debug -v --version -h --help" ;;
      "branch create") words="--from --commit --tag --at --number --uri --json --store --server --graph --profile --as --yes --quiet --debug -v --version -h --help" ;;
      "branch list") words="--uri --json --store --server --graph --profile --as --yes --quiet --debug -v --version -h --help" ;;
      "branch delete") words="--uri --json --store --server --graph --profile --as --yes --quiet --debug -v --version -h --help" ;;
      "branch merge") words="--into --delete-branch --prune-previous --preview --by --prefer --resolve --write-resolutions --base --uri --json --store --server --graph --profile --as --yes --quiet --debug -v --version -h --help" ;;
      "diff") words="--stat --kind --type --op --engine --uri --json --store --server --graph --profile --debug -v --version -h --help" ;;
      "tag create") words="--branch --commit --at --number --uri --json --store --server --graph --profile --as --yes --quiet --debug -v --version -h --help" ;;
      "tag list") words="--uri --json --store --server --graph --profile --as --yes --quiet --debug -v --version -h --help" ;;
      "tag show") words="--uri --json --store --server --graph --profile --as --yes --quiet --debug -v --version -h --help" ;;
      "tag delete") words="--uri --json --store --server --graph --profile --as --yes --quiet --debug -v --version -h --help" ;;
      "commit list") words="--branch --filter --since --until --limit --json --store --server --graph --profile --debug -v --version -h --help" ;;
      "commit show") words="--uri --json --store --server --graph --profile --debug -v --version -h --help" ;;
      "commit changes") words="--uri --limit --page-token --kind --type --op --json --store --server --graph --profile --debug -v --version -h --help" ;;
      "changes poll") words="--uri --branch --cursor --start --limit --kind --type --op --json --store --server --graph --profile --debug -v --version -h --help" ;;
      "changes baseline") words="--out --uri --branch --kind --type --op --json --store --server --graph --profile --debug -v --version -h --help" ;;
      "snapshot") words="--branch --json --store --server --graph --profile --as --debug -v --version -h --help" ;;
      "schema show") words="--branch --json --store --server --graph --profile --as --yes --quiet --debug -v --version -h --help" ;;
      "schema plan") words="--schema --allow-data-loss --validated --branch --json --store --profile --debug -v --version -h --help" ;;
      "schema apply") words="--schema --allow-data-loss --validated --branch --json --prune-previous --store --server --graph --profile --as --yes --quiet --debug -v --version -h --help" ;;
      "revert") words="--branch --message --prune-previous --uri --json --store --server --graph --profile --as --yes --quiet --debug -v --version -h --help" ;;
      "blame") words="--branch --uri --json --store --server --graph --profile --debug -v --version -h --help" ;;
      "log") words="--branch --limit --uri --json --store --server --graph --profile --debug -v --version -h --help" ;;
      "stats") words="--branch --json --store --server --graph --profile --debug -v --version -h --help" ;;
      "viz schema") words="--branch --out --json --store --profile --debug -v --version -h --help" ;;
      "viz query") words="--query -e --query-string --params --params-file --branch --snapshot --limit --out --json --store --profile --debug -v --version -h --help" ;;
      "viz diff") words="--uri --limit --out --json --store --profile --debug -v --version -h --help" ;;
      "viz history") words="--limit --out --json --store --profile --debug -v --version -h --help" ;;
      "analytics") words="--branch --edge --source --top --write --master --spark-conf --json --store --profile --as --debug -v --version -h --help" ;;
      "spark-sql") words="--branch --limit --master --spark-conf --uri --json --store --profile --debug -v --version -h --help" ;;
      "optimize") words="--branch --purge --json --store --cluster --graph --profile --yes --quiet --debug -v --version -h --help" ;;
      "prune") words="--branch --keep --older-than --commit --now --shared --dry-run --json --store --cluster --graph --profile --as --yes --quiet --debug -v --version -h --help" ;;
      "sweep") words="--older-than --dry-run --engine --json --store --cluster --graph --profile --yes --quiet --debug -v --version -h --help" ;;
      "cleanup") words="--keep --older-than --confirm --json --store --cluster --graph --profile --yes --quiet --debug -v --version -h --help" ;;
      "verify") words="--branch --deep --quarantine --json --store --cluster --graph --profile --yes --quiet --debug -v --version -h --help" ;;
      "repair") words="--confirm --force --clock --json --store --cluster --graph --profile --yes --quiet --debug -v --version -h --help" ;;
      "maintain") words="--every --once --keep --older-than --verify --max-seconds --max-bytes --json --store --cluster --graph --profile --yes --quiet --debug -v --version -h --help" ;;
      "shell") words="--branch --read-only --store --profile --as --debug -v --version -h --help" ;;
      "mcp") words="--allow-writes --allow-main --store --server --graph --profile --as --debug -v --version -h --help" ;;
      "cluster validate") words="--config --json --debug -v --version -h --help" ;;
      "cluster import") words="--config --json --debug -v --version -h --help" ;;
      "cluster plan") words="--config --json --debug -v --version -h --help" ;;
      "cluster apply") words="--config --json --as --debug -v --version -h --help" ;;
      "cluster status") words="--config --json --debug -v --version -h --help" ;;
      "cluster refresh") words="--config --json --debug -v --version -h --help" ;;
      "cluster approve") words="--config --json --as --debug -v --version -h --help" ;;
      "cluster force-unlock") words="--config --json --debug -v --version -h --help" ;;
      "policy validate") words="--json --cluster --graph --profile --debug -v --version -h --help" ;;
      "policy test") words="--tests --json --cluster --graph --profile --debug -v --version -h --help" ;;
      "policy explain") words="--actor --action --branch --target-branch --json --cluster --graph --profile --debug -v --version -h --help" ;;
      "queries validate") words="--json --cluster --graph --profile --debug -v --version -h --help" ;;
      "queries list") words="--json --cluster --graph --profile --debug -v --version -h --help" ;;
      "demo") words="--small --debug -v --version -h --help" ;;
      "graphs list") words="--json --server --profile --debug -v --version -h --help" ;;
      "alias") words="--params --params-file --format --json --debug -v --version -h --help" ;;
      "embed") words="--seed --input --output --spec --clean --reembed-all --type --select --json --debug -v --version -h --help" ;;
      "login") words="--token --json --debug -v --version -h --help" ;;
      "logout") words="--json --debug -v --version -h --help" ;;
      "profile list") words="--json --debug -v --version -h --help" ;;
      "profile show") words="--json --debug -v --version -h --help" ;;
      "token create") words="--file --json --debug -v --version -h --help" ;;
      "token list") words="--file --json --debug -v --version -h --help" ;;
      "token revoke") words="--file --json --debug -v --version -h --help" ;;
      "completion") words="--debug -v --version -h --help" ;;
      "version") words="--json --debug -v --version -h --help" ;;
    esac ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _omnigraph omnigraph
