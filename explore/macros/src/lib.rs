//! The attribute of `verbs-explore`, which documents it.

mod arguments;
mod function;

/// Makes a test of a function that is explored: see `verbs_explore::test`.
#[proc_macro_attribute]
pub fn test(
    arguments: proc_macro::TokenStream,
    function: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    function::expanded(arguments.into(), function.into())
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}
