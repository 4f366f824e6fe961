//! What is written is read as it was.

use proptest::prelude::*;
use verbs_roce::mad::{CmMad, attribute};

use crate::arbitrary::{config, mads};

proptest! {
    #![proptest_config(config(4000))]

    #[test]
    fn messages_are_read_as_they_were_written(mad in mads()) {
        let bytes = mad.write();
        prop_assert_eq!(attribute(&bytes), Some(mad.message.attribute()));
        prop_assert_eq!(CmMad::read(&bytes).unwrap(), mad);
    }
}
