use super::*;

#[test]
fn errno_and_kind_convert_totally_and_back() {
    for errno in -200..200 {
        assert_eq!(ErrorKind::from_errno(errno).errno(), errno);
    }
    for kind in ErrorKind::FROM_ERRNO {
        assert_eq!(ErrorKind::from_errno(kind.errno()), *kind);
    }
}

/// A test that unwraps a result says what went wrong.
#[test]
fn debug_of_an_error_is_what_it_says() {
    let error = Error::new(Verb::PostSend, ErrorKind::NoMemory, Cause::Injected);
    let text = "ibv_post_send: ENOMEM: a fault rule made the call fail";
    assert_eq!(format!("{error:?}"), text);
    let error = PostError::new(3, error);
    let text = format!("{text} (work request 3 of the list)");
    assert_eq!(format!("{error:?}"), text);
    assert_eq!(format!("{:?}", Error::from(error)), text);
}

#[test]
fn the_work_request_that_was_not_posted_survives_conversions() {
    let error = Error::new(Verb::PostSend, ErrorKind::NoMemory, Cause::Injected);
    assert_eq!(
        (error.bad_wr(), PostError::from(error.clone()).bad_wr),
        (None, 0)
    );
    let posted = PostError::new(3, error);
    let error = Error::from(posted.clone());
    assert_eq!(error.bad_wr(), Some(3));
    assert_eq!(PostError::from(error), posted);
}

#[test]
fn raw_numbers_keep_their_sign_beside_the_kind() {
    for raw in [12, -12] {
        let error = Error::from_raw(Verb::PostSend, raw);
        assert_eq!(
            (error.kind(), error.raw()),
            (ErrorKind::NoMemory, Some(raw))
        );
    }
    assert_eq!(
        Error::from_raw(Verb::PostSend, i32::MIN).kind(),
        ErrorKind::Os(i32::MIN)
    );
}
