//! Variables that have a program load other people's code, or start other programs than it names.

/// Those of loaders, languages and tools, by their whole names.
const NAMES: [&str; 80] = [
    "BASH_ENV",
    "BROWSER",
    "BUNDLE_GEMFILE",
    "CLASSPATH",
    "CORECLR_PROFILER_PATH",
    "COR_PROFILER_PATH",
    "DOTNET_ADDITIONAL_DEPS",
    "DOTNET_STARTUP_HOOKS",
    "EDITOR",
    "ENV",
    "ERL_AFLAGS",
    "ERL_FLAGS",
    "ERL_LIBS",
    "ERL_ZFLAGS",
    "FPATH",
    "GCONV_PATH",
    "GEM_HOME",
    "GEM_PATH",
    "GIT_ASKPASS",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_SYSTEM",
    "GIT_EDITOR",
    "GIT_EXEC_PATH",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_PROXY_COMMAND",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_TEMPLATE_DIR",
    "GOFLAGS",
    "GRADLE_OPTS",
    "GTK_MODULES",
    "JAVA_OPTIONS",
    "JAVA_OPTS",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVAC_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "JULIA_LOAD_PATH",
    "LESSOPEN",
    "LUA_CPATH",
    "LUA_INIT",
    "LUA_PATH",
    "MAVEN_OPTS",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NODE_REPL_EXTERNAL_MODULE",
    "NPM_CONFIG_GLOBALCONFIG",
    "NPM_CONFIG_NODE_OPTIONS",
    "NPM_CONFIG_SCRIPT_SHELL",
    "NPM_CONFIG_USERCONFIG",
    "OPENSSL_CONF",
    "OPENSSL_ENGINES",
    "OPENSSL_MODULES",
    "PAGER",
    "PERL5DB",
    "PERL5LIB",
    "PERL5OPT",
    "PERL5SHELL",
    "PERLLIB",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "PROMPT_COMMAND",
    "PYTHONBREAKPOINT",
    "PYTHONEXECUTABLE",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONPLATLIBDIR",
    "PYTHONSTARTUP",
    "PYTHONUSERBASE",
    "QT_PLUGIN_PATH",
    "RUBYLIB",
    "RUBYOPT",
    "RUSTC_WRAPPER",
    "SSH_ASKPASS",
    "VISUAL",
    "ZDOTDIR",
    "_JAVA_OPTIONS",
];
/// All variables that begin so: those of the system's loaders, functions of a shell, versions of Lua.
const BEGINNINGS: [&str; 6] = ["LD_", "DYLD_", "BASH_FUNC_", "LUA_PATH_", "LUA_CPATH_", "LUA_INIT_"];

/// Whether the value of a variable decides which code a program runs.
pub(super) fn loads_code(variable: &str) -> bool {
    // npm reads its own in either case.
    let is_npm = variable.get(..4).is_some_and(|begin| begin.eq_ignore_ascii_case("npm_"));
    NAMES.iter().any(|name| variable == *name || is_npm && variable.eq_ignore_ascii_case(name))
        || BEGINNINGS.iter().any(|begin| variable.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_every_loader_are_known_and_others_are_not() {
        for name in [
            "LD_PRELOAD",
            "LD_AUDIT",
            "DYLD_INSERT_LIBRARIES",
            "NODE_PATH",
            "RUBYLIB",
            "PERL5LIB",
            "_JAVA_OPTIONS",
            "JDK_JAVA_OPTIONS",
            "GCONV_PATH",
            "GIT_SSH_COMMAND",
            "BASH_FUNC_ls%%",
            "LUA_PATH_5_4",
            "npm_config_script_shell",
        ] {
            assert!(loads_code(name), "{name}");
        }
        for name in
            ["PATH", "HOME", "NODE_ENV", "GIT_AUTHOR_NAME", "LDAP_URL", "pager", "NPM_TOKEN", "PYTHONUNBUFFERED"]
        {
            assert!(!loads_code(name), "{name}");
        }
    }
}
