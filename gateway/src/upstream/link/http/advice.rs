//! What can be done about an HTTP upstream that says no, for whoever configures it.

/// What a status that says no asks for; nothing where it will pass, or says nothing of the configuration.
pub(crate) fn advice(status: u16) -> &'static str {
    match status {
        301 | 302 | 303 | 307 | 308 => "; set its `url` to where that leads",
        401 => "; set `headers` with the credentials that it wants, such as `Authorization`",
        403 => "; look whether the credentials in its `headers` are right, and may do this",
        404 | 410 => "; look whether the path of its `url` is right",
        405 => {
            "; look whether the path of its `url` is right: what is there takes no POST (HTTP+SSE, which has its messages elsewhere, \
             is not spoken)"
        }
        407 => "; something between here and there wants credentials of its own",
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
