//! The program: its allocator, and the way into the command line.

/// mimalloc saves five to eight per cent of the instructions of a call. It asks for no huge pages (`no_thp`): with them an idle
/// gateway holds twice the memory, and what it holds says nothing of what it uses.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    trunkline::cli::main()
}
