//! The arguments of the attribute.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Error, Expr, Ident, Result, Token, bracketed};

/// The methods of `Exploration` that the arguments stand for, to be called on one.
pub(crate) struct Arguments(Vec<TokenStream>);

const ARGUMENTS: [&str; 5] = ["seeds", "profiles", "faults", "config", "strict"];

const PLANS: [&str; 3] = ["standard", "harsh", "none"];

/// The names of `Profile::ALL`.
const PROFILES: [&str; 5] = ["spec", "rxe", "siw", "mlx5", "adversarial"];

impl Parse for Arguments {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let (mut names, mut calls) = (Vec::new(), Vec::new());
        while !input.is_empty() {
            let name = one_of("argument", &ARGUMENTS, input)?;
            if names.contains(&name) {
                return Err(Error::new(name.span(), format!("{name} is given twice")));
            }
            calls.push(call(&name, input)?);
            names.push(name);
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(Self(calls))
    }
}

/// The method for the argument of this name, which has been read.
fn call(name: &Ident, input: ParseStream<'_>) -> Result<TokenStream> {
    let private = quote!(::verbs_explore::__private);
    if name == "strict" {
        return Ok(quote!(.strict(#private::Suppressions::default())));
    }
    input.parse::<Token![=]>()?;
    Ok(if name == "profiles" {
        let list;
        bracketed!(list in input);
        let profile = |input: ParseStream<'_>| one_of("profile", &PROFILES, input);
        let profiles = Punctuated::<_, Token![,]>::parse_terminated_with(&list, profile)?;
        let profiles = profiles.iter().map(|profile| {
            let name = profile.to_string().to_uppercase();
            format_ident!("{name}", span = profile.span())
        });
        quote!(.profiles([#(#private::Profile::#profiles),*]))
    } else if name == "faults" {
        let plan = one_of("plan", &PLANS, input)?;
        let plan = if plan == "none" {
            format_ident!("default")
        } else {
            plan
        };
        quote!(.faults(#private::Plan::#plan()))
    } else {
        let value: Expr = input.parse()?;
        quote!(.#name(#value))
    })
}

/// Reads one of these names.
fn one_of(what: &str, names: &[&str], input: ParseStream<'_>) -> Result<Ident> {
    let name: Ident = input.parse()?;
    if names.iter().any(|known| name == known) {
        return Ok(name);
    }
    let names = names.join(", ");
    let message = format!("no {what} is called {name}; there are {names}");
    Err(Error::new(name.span(), message))
}

impl ToTokens for Arguments {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        tokens.extend(self.0.iter().cloned());
    }
}

#[cfg(test)]
mod tests {
    use verbs_api::profile::Profile;

    use super::PROFILES;

    #[test]
    fn each_profile_has_its_name() {
        let names: Vec<_> = Profile::ALL.iter().map(|profile| profile.name).collect();
        assert_eq!(names, PROFILES);
    }
}
