//! The function: what it may take, and the test around it.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, FnArg, Ident, ItemFn, Result, ReturnType, Signature, Type};

use crate::arguments::Arguments;

/// The test around the function. Both have the same name, which an error of the compiler then has.
pub(crate) fn expanded(arguments: TokenStream, function: TokenStream) -> Result<TokenStream> {
    let arguments: Arguments = syn::parse2(arguments)?;
    let function: ItemFn = syn::parse2(function)?;
    let call = call(&function.sig)?;
    let ItemFn {
        attrs,
        vis,
        sig,
        block,
    } = function;
    let name = &sig.ident;
    Ok(quote! {
        #(#attrs)*
        #[::core::prelude::v1::test]
        #vis fn #name() {
            #sig #block

            ::verbs_explore::__private::explore(
                ::verbs_explore::__private::exploration(::core::concat!(
                    ::core::module_path!(),
                    "::",
                    ::core::stringify!(#name),
                )) #arguments,
                #call,
            );
        }
    })
}

/// A closure that calls the function in a world. What the compiler refuses is at the types of the
/// function.
fn call(sig: &Signature) -> Result<TokenStream> {
    let name = &sig.ident;
    let output = match &sig.output {
        ReturnType::Type(_, output) => output.span(),
        ReturnType::Default => name.span(),
    };
    let (world, call) = match (sig.asyncness, &types(sig)?[..]) {
        (None, [world]) => {
            let world = shared(world, SYNC)?;
            let call = quote_spanned!(output=> #name(#world));
            (world, call)
        }
        (Some(_), [world, executor]) => {
            let (world, rt) = (shared(world, ASYNC)?, variable("rt", executor));
            let call = quote_spanned! {output=>
                ::verbs_explore::__private::block_on(#world, async |#rt| #name(#world, #rt).await)?
            };
            (world, call)
        }
        (asyncness, _) => {
            let takes = if asyncness.is_some() { ASYNC } else { SYNC };
            return Err(Error::new(sig.paren_token.span.join(), takes));
        }
    };
    Ok(quote!(|#world| ::verbs_explore::__private::ended(#call)))
}

const SYNC: &str = "an explored function takes `&World`";
const ASYNC: &str = "an explored async function takes `&World` and `Executor`";

/// The types of the arguments.
fn types(sig: &Signature) -> Result<Vec<&Type>> {
    let mut types = Vec::new();
    for input in &sig.inputs {
        match input {
            FnArg::Typed(input) => types.push(&*input.ty),
            FnArg::Receiver(own) => {
                return Err(Error::new_spanned(own, "an explored test has no `self`"));
            }
        }
    }
    Ok(types)
}

/// The variable of the world, whose type is a shared reference.
fn shared(world: &Type, takes: &str) -> Result<Ident> {
    match world {
        Type::Reference(reference) if reference.mutability.is_none() => {
            Ok(variable("world", world))
        }
        other => Err(Error::new_spanned(other, takes)),
    }
}

/// A variable that the function does not see, whatever its own name is.
fn variable(name: &str, of: &Type) -> Ident {
    Ident::new(name, Span::mixed_site().located_at(of.span()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The message of an error, and what it points at.
    fn refused(arguments: &str, function: &str) -> (String, String) {
        let [arguments, function] = [arguments, function].map(|text| text.parse().unwrap());
        let error = expanded(arguments, function).unwrap_err();
        let place = error.span().source_text().unwrap_or_default();
        (error.to_string(), place)
    }

    #[test]
    fn an_argument_that_makes_no_sense_is_refused_where_it_is() {
        let names = "seeds, profiles, faults, config, strict";
        let profiles = "spec, rxe, siw, mlx5, adversarial";
        for (arguments, message, place) in [
            (
                "seed = 0..9",
                format!("no argument is called seed; there are {names}"),
                "seed",
            ),
            ("strict, strict", "strict is given twice".into(), "strict"),
            (
                "profiles = [spec, rex]",
                format!("no profile is called rex; there are {profiles}"),
                "rex",
            ),
            ("profiles = spec", "expected square brackets".into(), "spec"),
            (
                "faults = hard",
                "no plan is called hard; there are standard, harsh, none".into(),
                "hard",
            ),
            ("config 3", "expected `=`".into(), "3"),
            ("strict = true", "expected `,`".into(), "="),
        ] {
            let refused = refused(arguments, "fn test(world: &World) {}");
            assert_eq!(refused, (message, place.to_owned()), "{arguments}");
        }
    }

    #[test]
    fn a_function_that_cannot_be_explored_is_refused_where_it_is_wrong() {
        for (function, message, place) in [
            ("fn test() {}", SYNC, "()"),
            ("fn test(world: World) {}", SYNC, "World"),
            ("fn test(world: &mut World) {}", SYNC, "&mut World"),
            (
                "fn test(world: &World, rt: Executor<'_>) {}",
                SYNC,
                "(world: &World, rt: Executor<'_>)",
            ),
            ("async fn test(world: &World) {}", ASYNC, "(world: &World)"),
            (
                "async fn test(rt: Executor<'_>, world: &World) {}",
                ASYNC,
                "Executor<'_>",
            ),
            (
                "fn test(&self) {}",
                "an explored test has no `self`",
                "&self",
            ),
            ("struct Test;", "expected `fn`", "struct"),
        ] {
            let expected = (message.to_owned(), place.to_owned());
            assert_eq!(refused("", function), expected, "{function}");
        }
    }
}
