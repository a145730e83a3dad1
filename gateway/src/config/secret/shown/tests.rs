//! Arguments and addresses: what is shown, and what is masked.

use super::*;

fn shown(words: &[&str]) -> String {
    args(words).join(" ")
}

#[test]
fn what_clearly_is_no_secret_is_shown() {
    for line in [
        "-y @modelcontextprotocol/server-filesystem@2025.1 /home/me/projects ./src ~/notes",
        "run -i redis:7 postgres:16.2 node:22-alpine python:3.12-slim",
        "run -v data:/data -v /srv/notes:/notes:ro --volume ~/x:/x:rw,z -v ${HOME}/y:/y mcp/time",
        "x --no-auth /srv/notes --no-password word --without-token stdio",
        "run -i --rm --network=host docker.io/mcp/time:latest",
        "mcp-server-git --repository /srv/repo --port 8080 --log-level=debug --verbose",
        "-m mcp_server_fetch --user-agent Mozilla",
        "mcp-remote https://mcp.example.com:8443/sse/v1",
        "--token ${TOKEN} --header Authorization:${AUTH} ${HOME}/x ${file:/run/secrets/a}",
        "-y @upstash/context7-mcp @upstash/context7-mcp@1.0.14 --caps=vision,pdf --only auth,firestore",
        "run --with mcp[cli] fastmcp[auth,cli] --include *.ts **/*.md",
        "-Dspring.main.banner-mode=off -Dserver.port=8080 -Xmx512m -Xms1g -jar x.jar",
        "run --mount type=bind,src=/home/me,dst=/projects,readonly --mount=type=tmpfs,target=/tmp mcp/time",
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!(shown(&words), line);
    }
    for url in [
        "https://mcp.example.com/v1/mcp",
        "http://127.0.0.1:3000/mcp",
        "unix:/run/mcp.sock",
        "ws://[::1]:80/ws",
        "https://${HOST}/mcp/${KEY}",
        "https://server.example.com/@me/server/mcp",
    ] {
        assert_eq!(address(url), url);
    }
}

#[test]
fn in_doubt_a_value_is_masked_and_no_name() {
    for (line, expected) in [
        (&["--token", "hunter"][..], "--token [secret]"),
        (&["-"], "-"),
        (&["xf", "-", "-C"], "xf - -C"),
        (&["--api-key=hunter"], "--api-key=[secret]"),
        (&["-p", "hunter"], "-p [secret]"),
        (&["-phunter"], "[secret]"),
        (&["hunter2hunter"], "[secret]"),
        (&["-e", "MODE=fast"], "-e MODE=[secret]"),
        (&["--header", "Authorization: Bearer hunter"], "--header Authorization: [secret]"),
        (&["--header", "Authorization: Bearer ${T}"], "--header Authorization: Bearer ${T}"),
        (&["-c", "curl -H key:hunter https://h"], "-c [secret]"),
        (&["{\"key\": \"hunter\"}"], "[secret]"),
        (&["me:hunter@tcp(h)/db"], "[secret]"),
        (&["me:hunter@host"], "[secret]"),
        (&["me:hunter"], "[secret]"),
        (&["me:7"], "[secret]"),
        (&["redis:123456"], "[secret]"),
        (&["redis:hunter"], "[secret]"),
        (&["-v", "me:hunter"], "-v [secret]"),
        (&["-v", "me:/hunter2hunter"], "-v [secret]"),
        (&["-v", "sk-proj-AbCdEfGh0123:/x"], "-v [secret]"),
        (&["-v", "ghp_hunter:/x"], "-v [secret]"),
        (&["-v", "/x:/y:hunter"], "-v /[secret]/[secret]"),
        (&["me:/hunter"], "[secret]"),
        (&["--no-auth", "hunter2hunter"], "--no-auth [secret]"),
        (&["--no-auth=hunter"], "--no-auth=[secret]"),
        (&["no-auth", "hunter"], "no-auth [secret]"),
        (&["${T:-hunter}"], "[secret]"),
        (&["--caps=vision,hunter2hunter"], "--caps=[secret]"),
        (&["me:hunter,horse"], "[secret]"),
        (&["x[hunter2hunter]"], "[secret]"),
        (&["hunter2hunter*"], "[secret]"),
        (&["-Dpassword=hunter"], "-Dpassword=[secret]"),
        (&["-Dx.api-key=hunter"], "-Dx.api-key=[secret]"),
        (&["-Dhunter2hunter=x"], "[secret]"),
        (&["-Xmxhunter"], "[secret]"),
        (&["--mount", "type=bind,password=hunter"], "--mount type=[secret]"),
        (&["--mount", "src=hunter2hunter"], "--mount src=[secret]"),
        (&["@hunter2hunter/x"], "[secret]"),
        (&["hunter2"], "[secret]"),
        (&["sk-proj-AbCdEfGh0123"], "[secret]"),
        (&["ghp_0123456789abcdefghijABCDEFGHIJ012345"], "[secret]"),
        (&["/srv/694b49ebd5f443d985f4000000000000/x"], "/srv/[secret]/x"),
        (&["postgres://me:hunter@db:5432/app"], "postgres://[secret]@db:5432/app"),
    ] {
        assert_eq!(shown(line), expected);
    }
    for (url, expected) in [
        (
            "https://h.example/mcp?api_key=hunter&page=1#hunter",
            "https://h.example/mcp?api_key=[secret]&page=[secret]#[secret]",
        ),
        ("https://h/s/Njk0YjQ5ZWItZDVmNC00M2Q5LTg1/mcp", "https://h/s/[secret]/mcp"),
        ("https://hunter@h/x", "https://[secret]@h/x"),
        ("https://me:hun/ter@h/x", "https://[secret]@h/x"),
        ("https://h/?hunter", "https://h/?[secret]"),
        ("https://h/mcp?key=${KEY}", "https://h/mcp?key=${KEY}"),
    ] {
        assert_eq!(address(url), expected);
    }
}
