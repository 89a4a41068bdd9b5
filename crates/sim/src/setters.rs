//! Methods of builders.

/// Methods that take a value by itself and give it back with a field changed: the field of their name, or the one behind `=>`. Behind
/// `=` stands what the field is set to, and otherwise the method that changes it. Of a builder that keeps its fields inside another
/// value, the type is followed by the way there.
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
        $($(#[$doc:meta])* $name:ident($($value:ident: $from:ty),*) $(=> $field:ident)?
            $(.$method:ident($($argument:expr),*))? $(= $to:expr)?;)+
    ) => {
        impl $type {
            $($(#[$doc])*
            #[must_use = "it gives back what it has changed"]
            pub fn $name(mut self $(, $value: $from)*) -> Self {
                setters!(@change self $way $name [$($field)?] $(.$method($($argument),*))? $(= $to)?);
                self
            })+
        }
    };
    (@change $self:ident [$($way:tt)*] $name:ident [] $($change:tt)+) => { $self$($way)*.$name $($change)+ };
    (@change $self:ident [$($way:tt)*] $name:ident [$field:ident] $($change:tt)+) => { $self$($way)*.$field $($change)+ };
}

/// Constructors, which set these fields of a value by itself.
macro_rules! constructors {
    ($type:ident: $($(#[$doc:meta])* $name:ident($($value:ident: $from:ty),*) { $($fields:tt)+ })+) => {
        impl $type {
            $($(#[$doc])*
            pub fn $name($($value: $from),*) -> Self {
                Self { $($fields)+, ..Self::default() }
            })+
        }
    };
}
