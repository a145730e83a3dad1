//! What can be done about an HTTP upstream that says no, for whoever configures it.

/// What a status that says no asks for; nothing where it will pass, or says nothing of the configuration.
pub(crate) fn advice(status: u16) -> &'static str {
    match status {
        301 | 302 | 303 | 307 | 308 => "; set `url` to the new location",
        401 => "; set `headers` with its credentials, such as `Authorization`",
        403 => "; check the credentials in `headers` and their permissions",
        404 | 410 => "; check the path of its `url`",
        405 => {
            "; check the path of its `url`: what is there takes no POST (HTTP+SSE, which has its messages elsewhere, \
             is not spoken)"
        }
        407 => "; a proxy on the way wants credentials",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_that_the_configuration_can_mend_says_how() {
        for (status, word) in
            [(302, "`url`"), (401, "`headers`"), (403, "`headers`"), (404, "`url`"), (405, "HTTP+SSE")]
        {
            assert!(advice(status).contains(word), "{status}");
        }
        assert_eq!([429, 500, 503].map(advice), [""; 3]);
    }
}
