//! Methods of builders.

/// Methods that take a value by itself and give it back with a field changed: the field of their name, or the one behind `=>`. Of a
/// builder that keeps its fields inside another value, the type is followed by the way there.
macro_rules! setters {
    ($type:ident: $($setter:tt)+) => {
        setters! { @all $type [] $($setter)+ }
    };
    ($type:ident.$outer:ident: $($setter:tt)+) => {
        setters! { @all $type [.$outer] $($setter)+ }
    };
    ($type:ident.$outer:ident.$inner:ident: $($setter:tt)+) => {
        setters! { @all $type [.$outer.$inner] $($setter)+ }
    };
    (@all $type:ident $way:tt
        $($(#[$doc:meta])* $name:ident($($value:ident: $from:ty)?) $(=> $field:ident)? = $to:expr;)+
    ) => {
        impl $type {
            $($(#[$doc])*
            #[must_use = "it gives back what it has changed"]
            pub fn $name(mut self $(, $value: $from)?) -> Self {
                setters!(@field self $way $name $($field)?) = $to;
                self
            })+
        }
    };
    (@field $self:ident [$($way:tt)*] $name:ident) => { $self$($way)*.$name };
    (@field $self:ident [$($way:tt)*] $name:ident $field:ident) => { $self$($way)*.$field };
}
