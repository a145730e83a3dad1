//! A small upstream in the language of the shell: for what only a program without a library around it does.

use crate::process::Program;

/// An upstream with these tools, each a name and what the shell does when it is called. In there `$id` is the call's number,
/// `said TEXT` answers with a text, and nothing more is read from stdin before it is done.
#[must_use]
pub fn upstream(tools: &[(&str, &str)]) -> Program {
    let listed: Vec<String> = tools
        .iter()
        .map(|(name, _)| format!("{{\"name\":\"{name}\",\"inputSchema\":{{\"type\":\"object\"}}}}"))
        .collect();
    let bodies: String = tools.iter().map(|(name, body)| format!("  *'\"name\":\"{name}\"'*) {body} ;;\n")).collect();
    let script = format!(
        r#"answer() {{ printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$id" "$1"; }}
said() {{ answer '{{"content":[{{"type":"text","text":"'"$1"'"}}]}}'; }}
while read -r line; do
  id=${{line#*\"id\":}}; id=${{id%%,*}}
  case "$line" in
  *'"server/discover"'*) printf '{{"jsonrpc":"2.0","id":%s,"error":{{"code":-32601,"message":"no"}}}}\n' "$id" ;;
  *'"initialize"'*) answer '{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}},"logging":{{}}}},"serverInfo":{{"name":"shell","version":"1"}}}}' ;;
  *'"tools/list"'*) answer '{{"tools":[{listed}]}}' ;;
{bodies}  esac
done"#,
        listed = listed.join(",")
    );
    Program { path: "/bin/sh".into(), args: vec!["-c".into(), script], env: Vec::new() }
}

/// An upstream that offers so many pages of tools, on each of them so many with a description of so many bytes.
#[must_use]
pub fn lister(pages: usize, tools: usize, bytes: usize) -> Program {
    let script = format!(
        r#"answer() {{ printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$id" "$1"; }}
while read -r line; do
  id=${{line#*\"id\":}}; id=${{id%%,*}}
  case "$line" in
  *'"server/discover"'*) printf '{{"jsonrpc":"2.0","id":%s,"error":{{"code":-32601,"message":"no"}}}}\n' "$id" ;;
  *'"initialize"'*) answer '{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"lister","version":"1"}}}}' ;;
  *'"tools/list"'*)
    case "$line" in *'"cursor":"'*) page=${{line#*\"cursor\":\"}}; page=${{page%%\"*}} ;; *) page=0 ;; esac
    printf '{{"jsonrpc":"2.0","id":%s,"result":{{"tools":[' "$id"
    tool=0
    while [ $tool -lt {tools} ]; do
      [ $tool -gt 0 ] && printf ,
      printf '{{"name":"t%s_%s","inputSchema":{{"type":"object"}},"description":"' $page $tool
      head -c {bytes} /dev/zero | tr '\0' x
      printf '"}}'
      tool=$((tool + 1))
    done
    page=$((page + 1))
    if [ $page -lt {pages} ]; then printf '],"nextCursor":"%s"}}}}\n' $page; else printf ']}}}}\n'; fi ;;
  esac
done"#
    );
    Program { path: "/bin/sh".into(), args: vec!["-c".into(), script], env: Vec::new() }
}
