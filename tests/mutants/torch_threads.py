"""Wrong variants of a prompt that is read in pieces side by side."""

from tests.mutants.torch_kit import mutant

ORDER = "threads:test_each_function_waits_for_the_one_before_it_and_the_one_above"
MODES = "threads:test_each_worker_has_its_share_of_the_threads_and_the_callers_modes"
ERROR = "threads:test_the_first_error_ends_all_work_and_reaches_the_caller"
PIECES = "threads:test_a_prompt_read_in_pieces_side_by_side_is_the_prompt_read_at_once"

MUTANTS = (
    mutant(
        "threads",
        "a piece follows the one before it, a layer behind",
        "it may run ahead of it",
        "above = self._done[piece - 1] if piece else len(self._grid[0])",
        "above = len(self._grid[0])",
        ORDER,
    ),
    mutant(
        "threads",
        "a piece is in one layer at a time",
        "in several",
        "if piece not in self._running and done",
        "if done",
        ORDER,
    ),
    mutant(
        "threads",
        "a piece that is held up holds up only those behind it",
        "it holds up all",
        "if piece not in self._running and done",
        "if not self._running and done",
        "threads:test_a_piece_goes_on_while_another_is_held_up",
    ),
    mutant(
        "threads",
        "workers share the threads",
        "each has all of them",
        "each = max(1, torch.get_num_threads() // workers)",
        "each = torch.get_num_threads()",
        MODES,
    ),
    mutant(
        "threads",
        "no gradient is kept where the caller keeps none",
        "the other thread keeps them",
        "with torch.inference_mode(inference)",
        "with torch.inference_mode(False)",
        MODES,
    ),
    mutant(
        "threads",
        "an error ends all work",
        "the other pieces go on",
        "while self.error is None and any(",
        "while any(",
        ERROR,
    ),
    mutant(
        "threads",
        "the caller is told of an error",
        "it is not",
        "    if front.error is not None:\n        raise front.error\n",
        "",
        ERROR,
    ),
    mutant(
        "v4_model",
        "a piece begins where the one before it ends",
        "all begin at the same position",
        "first = cache.lengths + counts.clamp_max(begin)",
        "first = cache.lengths",
        PIECES,
    ),
    mutant(
        "v4_model",
        "a row that has ended has no tokens in later pieces",
        "they begin behind its end all the same",
        "first = cache.lengths + counts.clamp_max(begin)",
        "first = cache.lengths + begin",
        PIECES,
    ),
    mutant(
        "output",
        "the outputs of pieces are one output",
        "what the last norm reads is that of the last piece",
        "hidden = torch.cat([output.hidden for output in outputs], dim=1)",
        "hidden = last.hidden",
        PIECES,
    ),
)
