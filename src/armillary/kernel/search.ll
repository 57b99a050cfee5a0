; Multi-start search: iterate a step on LANES problems at once until each is solved.
;
; Words in capitals are put in by search_text.py: LANES, N (unknowns), M (parameters of a
; problem), C (parameters that all problems share), K (errors), PAIRS (of features), products of them, and MASK, the integer with
; a bit for each lane; also the places of the words of a job, and of the fields of %State.
; @step is the compiled step: it reads the unknowns and parameters of all lanes, column by
; column, and writes the next unknowns and the errors of the present ones. @guard, compiled
; too, writes a number above 0 for parameters that make sense. STEP_INPUTS are the inputs of
; @step: unknowns, parameters, and what all problems share if there is any.
;
; A lane that has solved its problem takes the next one at once; a lane that has not come
; nearer starts again from another place. Starts come from the caller, then from a table
; of known answers (nearest first, searched in the grid cell of the problem), then at
; random from a key that depends on the problem alone.

; What a search keeps while it runs. Fields that programs read or write as whole vectors
; come first: their offsets are multiples of a vector's size, for any number of lanes.
%State = type {
  [NW x double],       ; HERE: unknowns, one way round
  [NW x double],       ; THERE: unknowns, the other way round
  [MW x double],       ; PARAMETERS: of the problem
  [CW x double],       ; SHARED: parameters of all problems
  [KW x double],       ; ERRORS
  [LANES x i64],       ; AGE: steps since the start
  [LANES x i64],       ; WORKS: whether the lane works, 1 or 0
  [LANES x double],    ; LAST_ERROR: at the step before
  [LANES x i64],       ; PROBLEM: which one
  [LANES x i64],       ; TRIES: starts made
  [LANES x i64],       ; STEPS: made for the problem
  [LANES x double],    ; LEAST_ERROR: at the end of a start
  [LANES x double],    ; VERDICT: what the guard says
  [LANES x i32],       ; TAKEN: distance of the last start taken from the table
  [LANES x <8 x i32>], ; DISTANCES: of those that were found with it
  [LANES x <8 x i32>], ; PACKS: in which they lie
  i64,                 ; NEXT: the next problem
  i64,                 ; LEFT: problems to finish
  i64                  ; FAILURES: problems not solved
}

; A word of a job, or an address, by its place.
define internal i64 @word(ptr %job, i64 %k) alwaysinline {
  %place = getelementptr i64, ptr %job, i64 %k
  %value = load i64, ptr %place
  ret i64 %value
}

define internal ptr @address(ptr %job, i64 %k) alwaysinline {
  %place = getelementptr ptr, ptr %job, i64 %k
  %value = load ptr, ptr %place
  ret ptr %value
}

; SplitMix64: a good 64-bit number from any other.
define internal i64 @mix(i64 %x) alwaysinline {
  %a = add i64 %x, -7046029254386353131
  %b = lshr i64 %a, 30
  %c = xor i64 %a, %b
  %d = mul i64 %c, -4658895280553007687
  %e = lshr i64 %d, 27
  %f = xor i64 %d, %e
  %g = mul i64 %f, -7723592293110705685
  %h = lshr i64 %g, 31
  %i = xor i64 %g, %h
  ret i64 %i
}

; A number made of the parameters of a problem.
define internal i64 @key(ptr %problem) {
entry:
  br label %turn
turn:
  %k = phi i64 [ 0, %entry ], [ %next, %turn ]
  %key = phi i64 [ 0, %entry ], [ %key_next, %turn ]
  %number_at = getelementptr double, ptr %problem, i64 %k
  %bits = load i64, ptr %number_at
  %mixed = call i64 @mix(i64 %key)
  %key_next = xor i64 %mixed, %bits
  %next = add i64 %k, 1
  %more = icmp slt i64 %next, M
  br i1 %more, label %turn, label %exit
exit:
  ret i64 %key_next
}

; The parameters of a problem.
define internal ptr @problem(ptr %job, i64 %index) alwaysinline {
  %problems = call ptr @address(ptr %job, i64 PROBLEMS)
  %stride = call i64 @word(ptr %job, i64 STRIDE)
  %start = mul i64 %index, %stride
  %row = getelementptr double, ptr %problems, i64 %start
  ret ptr %row
}

; A row of numbers for a problem: word `which` of the job, `size` numbers long.
define internal ptr @row(ptr %job, i64 %which, i64 %index, i64 %size) alwaysinline {
  %rows = call ptr @address(ptr %job, i64 %which)
  %start = mul i64 %index, %size
  %row = getelementptr double, ptr %rows, i64 %start
  ret ptr %row
}

; Say that numbers are not known.
define internal void @blank(ptr %row, i64 %count) {
entry:
  br label %turn
turn:
  %k = phi i64 [ 0, %entry ], [ %next, %turn ]
  %at = getelementptr double, ptr %row, i64 %k
  store double 0x7FF8000000000000, ptr %at
  %next = add i64 %k, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %turn, label %exit
exit:
  ret void
}

; Copy unknowns into the column of a lane.
define internal void @put(ptr %column, i64 %lane, ptr %row, i64 %count) {
entry:
  br label %turn
turn:
  %k = phi i64 [ 0, %entry ], [ %next, %turn ]
  %from = getelementptr double, ptr %row, i64 %k
  %number = load double, ptr %from
  %down = mul i64 %k, LANES
  %at = add i64 %down, %lane
  %to = getelementptr double, ptr %column, i64 %at
  store double %number, ptr %to
  %next = add i64 %k, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %turn, label %exit
exit:
  ret void
}

; Copy the column of a lane into a row.
define internal void @get(ptr %row, ptr %column, i64 %lane, i64 %count) {
entry:
  br label %turn
turn:
  %k = phi i64 [ 0, %entry ], [ %next, %turn ]
  %down = mul i64 %k, LANES
  %at = add i64 %down, %lane
  %from = getelementptr double, ptr %column, i64 %at
  %number = load double, ptr %from
  %to = getelementptr double, ptr %row, i64 %k
  store double %number, ptr %to
  %next = add i64 %k, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %turn, label %exit
exit:
  ret void
}

; The coordinate of a problem in the grid along one axis, within its bounds.
define internal i64 @grid(ptr %job, ptr %problem, i64 %axis) {
  %which = call ptr @address(ptr %job, i64 AXES)
  %axis_at = getelementptr i64, ptr %which, i64 %axis
  %element = load i64, ptr %axis_at
  %value_at = getelementptr double, ptr %problem, i64 %element
  %value = load double, ptr %value_at
  %grid = call ptr @address(ptr %job, i64 GRID)
  %origin_at = getelementptr double, ptr %grid, i64 %axis
  %origin = load double, ptr %origin_at
  %inverse_at = getelementptr double, ptr %grid, i64 3
  %inverse = load double, ptr %inverse_at
  %size_k = add i64 %axis, 4
  %size_at = getelementptr double, ptr %grid, i64 %size_k
  %size = load double, ptr %size_at
  %shifted = fsub double %value, %origin
  %scaled = fmul double %shifted, %inverse
  %low = fcmp ogt double %scaled, 0.0
  %above = select i1 %low, double %scaled, double 0.0
  %high = fcmp olt double %above, %size
  %inside = select i1 %high, double %above, double %size
  %cell = fptosi double %inside to i64
  ret i64 %cell
}

; Look through the grid cell of a problem for table entries that are farther than `taken`:
; for each place in a pack the nearest. Entries lie in packs of eight, two features after
; two, in whole numbers, so that eight entries are compared at once.
define internal void @scan(ptr %job, ptr %problem, i32 %taken, ptr %distances, ptr %packs) {
entry:
  %x = call i64 @grid(ptr %job, ptr %problem, i64 0)
  %y = call i64 @grid(ptr %job, ptr %problem, i64 1)
  %z = call i64 @grid(ptr %job, ptr %problem, i64 2)
  %grid = call ptr @address(ptr %job, i64 GRID)
  %ny_at = getelementptr double, ptr %grid, i64 7
  %ny_real = load double, ptr %ny_at
  %ny = fptosi double %ny_real to i64
  %nz_at = getelementptr double, ptr %grid, i64 8
  %nz_real = load double, ptr %nz_at
  %nz = fptosi double %nz_real to i64
  %xs = mul i64 %x, %ny
  %xy = add i64 %xs, %y
  %xys = mul i64 %xy, %nz
  %cell = add i64 %xys, %z
  %offsets = call ptr @address(ptr %job, i64 OFFSETS)
  %first_at = getelementptr i64, ptr %offsets, i64 %cell
  %first = load i64, ptr %first_at
  %cell_next = add i64 %cell, 1
  %end_at = getelementptr i64, ptr %offsets, i64 %cell_next
  %end = load i64, ptr %end_at
  %features = call ptr @address(ptr %job, i64 FEATURES)
  %wanted = alloca <16 x i16>, i64 PAIRS, align 32
  %limit0 = insertelement <8 x i32> poison, i32 %taken, i32 0
  %limit = shufflevector <8 x i32> %limit0, <8 x i32> poison, <8 x i32> zeroinitializer
  br label %pair
pair:
  %s = phi i64 [ 0, %entry ], [ %s_next, %pair ]
  %s_even = shl i64 %s, 1
  %s_odd = or i64 %s_even, 1
  %even = call i32 @feature(ptr %job, ptr %problem, i64 %s_even)
  %odd = call i32 @feature(ptr %job, ptr %problem, i64 %s_odd)
  %low = and i32 %even, 65535
  %high = shl i32 %odd, 16
  %both = or i32 %low, %high
  %both0 = insertelement <8 x i32> poison, i32 %both, i32 0
  %both8 = shufflevector <8 x i32> %both0, <8 x i32> poison, <8 x i32> zeroinitializer
  %w_at = getelementptr <8 x i32>, ptr %wanted, i64 %s
  store <8 x i32> %both8, ptr %w_at, align 32
  %s_next = add i64 %s, 1
  %s_more = icmp slt i64 %s_next, PAIRS
  br i1 %s_more, label %pair, label %head
head:
  %any = icmp slt i64 %first, %end
  br i1 %any, label %pack, label %found
pack:
  %r = phi i64 [ %first, %head ], [ %r_next, %compared ]
  %best = phi <8 x i32> [ zeroinitializer, %head ], [ %best_next, %compared ]
  %least = phi <8 x i32> [ splat (i32 2147483647), %head ], [ %least_next, %compared ]
  %start = mul i64 %r, PAIRS
  %base = getelementptr <16 x i16>, ptr %features, i64 %start
  br label %sum
sum:
  %k = phi i64 [ 0, %pack ], [ %k_next, %sum ]
  %d = phi <8 x i32> [ zeroinitializer, %pack ], [ %d_next, %sum ]
  %a_at = getelementptr <16 x i16>, ptr %base, i64 %k
  %a = load <16 x i16>, ptr %a_at, align 2
  %b_at = getelementptr <16 x i16>, ptr %wanted, i64 %k
  %b = load <16 x i16>, ptr %b_at, align 32
  %ab = sub <16 x i16> %a, %b
  %squares = call <8 x i32> @squares(<16 x i16> %ab)
  %d_next = add <8 x i32> %d, %squares
  %k_next = add i64 %k, 1
  %k_more = icmp slt i64 %k_next, PAIRS
  br i1 %k_more, label %sum, label %compared
compared:
  %fresh = icmp sgt <8 x i32> %d_next, %limit
  %nearer = icmp slt <8 x i32> %d_next, %least
  %better = and <8 x i1> %fresh, %nearer
  %r32 = trunc i64 %r to i32
  %r0 = insertelement <8 x i32> poison, i32 %r32, i32 0
  %r8 = shufflevector <8 x i32> %r0, <8 x i32> poison, <8 x i32> zeroinitializer
  %best_next = select <8 x i1> %better, <8 x i32> %r8, <8 x i32> %best
  %least_next = select <8 x i1> %better, <8 x i32> %d_next, <8 x i32> %least
  %r_next = add i64 %r, 1
  %r_more = icmp slt i64 %r_next, %end
  br i1 %r_more, label %pack, label %found
found:
  %distances_found = phi <8 x i32> [ splat (i32 2147483647), %head ], [ %least_next, %compared ]
  %packs_found = phi <8 x i32> [ zeroinitializer, %head ], [ %best_next, %compared ]
  store <8 x i32> %distances_found, ptr %distances
  store <8 x i32> %packs_found, ptr %packs
  ret void
}

; A feature of a problem, as a whole number within the bounds of the table's.
define internal i32 @feature(ptr %job, ptr %problem, i64 %k) alwaysinline {
  %columns = call ptr @address(ptr %job, i64 COLUMNS)
  %column_at = getelementptr i64, ptr %columns, i64 %k
  %column = load i64, ptr %column_at
  %value_at = getelementptr double, ptr %problem, i64 %column
  %value = load double, ptr %value_at
  %factors = call ptr @address(ptr %job, i64 FACTORS)
  %factor_at = getelementptr double, ptr %factors, i64 %k
  %factor = load double, ptr %factor_at
  %scaled = fmul double %value, %factor
  %low = fcmp ogt double %scaled, -LEVELS.0
  %above = select i1 %low, double %scaled, double -LEVELS.0
  %high = fcmp olt double %above, LEVELS.0
  %inside = select i1 %high, double %above, double LEVELS.0
  %whole = fptosi double %inside to i32
  ret i32 %whole
}

; The nearest table entry that was not taken yet; -1 for none.
define internal i64 @nearest(ptr %job, ptr %problem, ptr %s, i64 %slot) {
entry:
  %distances = getelementptr %State, ptr %s, i64 0, i32 DISTANCES, i64 %slot
  %packs = getelementptr %State, ptr %s, i64 0, i32 PACKS, i64 %slot
  %taken_at = getelementptr %State, ptr %s, i64 0, i32 TAKEN, i64 %slot
  %void64 = call i64 @word(ptr %job, i64 VOID)
  %void = trunc i64 %void64 to i32
  %known = load <8 x i32>, ptr %distances
  %least_known = call i32 @llvm.vector.reduce.smin.v8i32(<8 x i32> %known)
  %left = icmp slt i32 %least_known, %void
  br i1 %left, label %take, label %look
look:
  %taken = load i32, ptr %taken_at
  call void @scan(ptr %job, ptr %problem, i32 %taken, ptr %distances, ptr %packs)
  %seen = load <8 x i32>, ptr %distances
  %least_seen = call i32 @llvm.vector.reduce.smin.v8i32(<8 x i32> %seen)
  %some = icmp slt i32 %least_seen, %void
  br i1 %some, label %take, label %none
take:
  %all = phi <8 x i32> [ %known, %entry ], [ %seen, %look ]
  %least = phi i32 [ %least_known, %entry ], [ %least_seen, %look ]
  %least0 = insertelement <8 x i32> poison, i32 %least, i32 0
  %least8 = shufflevector <8 x i32> %least0, <8 x i32> poison, <8 x i32> zeroinitializer
  %equal = icmp eq <8 x i32> %all, %least8
  %bits = bitcast <8 x i1> %equal to i8
  %first = call i8 @llvm.cttz.i8(i8 %bits, i1 true)
  %place = zext i8 %first to i64
  %used_at = getelementptr i32, ptr %distances, i64 %place
  store i32 2147483647, ptr %used_at
  store i32 %least, ptr %taken_at
  %pack_at = getelementptr i32, ptr %packs, i64 %place
  %pack = load i32, ptr %pack_at
  %wide = sext i32 %pack to i64
  %entry0 = mul i64 %wide, 8
  %row = add i64 %entry0, %place
  ret i64 %row
none:
  ret i64 -1
}

declare i32 @llvm.vector.reduce.smin.v8i32(<8 x i32>)
declare i8 @llvm.cttz.i8(i8, i1)

; Put a lane at its next starting place.
define internal void @start(ptr %job, ptr %s, ptr %to, i64 %lane, i64 %slot) {
entry:
  %age_at = getelementptr %State, ptr %s, i64 0, i32 AGE, i64 %lane
  store i64 0, ptr %age_at
  %last_at = getelementptr %State, ptr %s, i64 0, i32 LAST_ERROR, i64 %lane
  store double 0x7FF0000000000000, ptr %last_at
  %tries_at = getelementptr %State, ptr %s, i64 0, i32 TRIES, i64 %slot
  %tries = load i64, ptr %tries_at
  %tries_next = add i64 %tries, 1
  store i64 %tries_next, ptr %tries_at
  %lane_tries_at = getelementptr %State, ptr %s, i64 0, i32 TRIES, i64 %lane
  store i64 %tries_next, ptr %lane_tries_at
  %index_at = getelementptr %State, ptr %s, i64 0, i32 PROBLEM, i64 %slot
  %index = load i64, ptr %index_at
  %problem = call ptr @problem(ptr %job, i64 %index)
  %seeds = call ptr @address(ptr %job, i64 SEEDS)
  %given = icmp ne ptr %seeds, null
  %first = icmp eq i64 %tries, 0
  %use_seed = and i1 %given, %first
  br i1 %use_seed, label %seed, label %look
seed:
  %seed_row = call ptr @row(ptr %job, i64 SEEDS, i64 %index, i64 N)
  call void @put(ptr %to, i64 %lane, ptr %seed_row, i64 N)
  ret void
look:
  %table_tries = call i64 @word(ptr %job, i64 TABLE_STARTS)
  %still = icmp slt i64 %tries, %table_tries
  br i1 %still, label %table, label %random
table:
  %place = call i64 @nearest(ptr %job, ptr %problem, ptr %s, i64 %slot)
  %found = icmp sge i64 %place, 0
  br i1 %found, label %known, label %random
known:
  %start_row = call ptr @row(ptr %job, i64 STARTS, i64 %place, i64 N)
  call void @put(ptr %to, i64 %lane, ptr %start_row, i64 N)
  ret void
random:
  %salt = call i64 @word(ptr %job, i64 SALT)
  %salt_mixed = call i64 @mix(i64 %salt)
  %tries_mixed = call i64 @mix(i64 %tries)
  %key = call i64 @key(ptr %problem)
  %key_salted = xor i64 %key, %salt_mixed
  %key_try = xor i64 %key_salted, %tries_mixed
  %lower = call ptr @address(ptr %job, i64 LOWER)
  %span = call ptr @address(ptr %job, i64 SPAN)
  br label %draw
draw:
  %k = phi i64 [ 0, %random ], [ %k_next, %draw ]
  %seeded = add i64 %key_try, %k
  %bits = call i64 @mix(i64 %seeded)
  %top = lshr i64 %bits, 11
  %real = uitofp i64 %top to double
  %unit = fmul double %real, 0x3CA0000000000000
  %span_at = getelementptr double, ptr %span, i64 %k
  %width = load double, ptr %span_at
  %lower_at = getelementptr double, ptr %lower, i64 %k
  %low = load double, ptr %lower_at
  %part = fmul double %unit, %width
  %value = fadd double %low, %part
  %down = mul i64 %k, LANES
  %at = add i64 %down, %lane
  %to_at = getelementptr double, ptr %to, i64 %at
  store double %value, ptr %to_at
  %k_next = add i64 %k, 1
  %k_more = icmp slt i64 %k_next, N
  br i1 %k_more, label %draw, label %exit
exit:
  ret void
}

; Whether the deadline of the call has passed; a call without one never asks the clock.
define internal i1 @late(ptr %job) alwaysinline {
entry:
  %time = alloca [2 x i64]
  %deadline = call i64 @word(ptr %job, i64 DEADLINE)
  %timed = icmp sgt i64 %deadline, 0
  br i1 %timed, label %look, label %exit
look:
  %clock_gettime = call ptr @address(ptr %job, i64 CLOCK)
  %clock = call i64 @word(ptr %job, i64 CLOCK_ID)
  %clock_id = trunc i64 %clock to i32
  %status = call i32 %clock_gettime(i32 %clock_id, ptr %time)
  %seconds = load i64, ptr %time
  %rest_at = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %rest_at
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %rest
  %over = icmp sge i64 %now, %deadline
  br label %exit
exit:
  %is_late = phi i1 [ false, %entry ], [ %over, %look ]
  ret i1 %is_late
}

; Write how a problem ended.
define internal void @ending(ptr %job, ptr %s, i64 %index, i64 %status, i64 %steps, i64 %tries) {
  %left_at = getelementptr %State, ptr %s, i64 0, i32 LEFT
  %left = load i64, ptr %left_at
  %left_next = sub i64 %left, 1
  store i64 %left_next, ptr %left_at
  %failures_at = getelementptr %State, ptr %s, i64 0, i32 FAILURES
  %failures = load i64, ptr %failures_at
  %failed = icmp ne i64 %status, 0
  %one_more = zext i1 %failed to i64
  %failures_next = add i64 %failures, %one_more
  store i64 %failures_next, ptr %failures_at
  %row = call ptr @row(ptr %job, i64 ENDINGS, i64 %index, i64 3)
  store i64 %status, ptr %row
  %steps_at = getelementptr i64, ptr %row, i64 1
  store i64 %steps, ptr %steps_at
  %tries_at = getelementptr i64, ptr %row, i64 2
  store i64 %tries, ptr %tries_at
  %chained = call i64 @word(ptr %job, i64 CHAINED)
  %is_chained = icmp ne i64 %chained, 0
  br i1 %is_chained, label %hand, label %exit
hand:
  %index_next = add i64 %index, 1
  %seed_next = call ptr @row(ptr %job, i64 SEEDS, i64 %index_next, i64 N)
  %seed = call ptr @row(ptr %job, i64 SEEDS, i64 %index, i64 N)
  %answer = call ptr @row(ptr %job, i64 ANSWERS, i64 %index, i64 N)
  %last = select i1 %failed, ptr %seed, ptr %answer
  call void @llvm.memcpy.p0.p0.i64(ptr %seed_next, ptr %last, i64 NBYTES, i1 false)
  br label %exit
exit:
  ret void
}

; Give a lane the next problem that makes sense; let it rest when there is none. Where the
; deadline has passed, all problems that are left end at once.
define internal void @take(ptr %job, ptr %s, ptr %to, i64 %lane, i1 %late) {
entry:
  %next_at = getelementptr %State, ptr %s, i64 0, i32 NEXT
  %alive_at = getelementptr %State, ptr %s, i64 0, i32 WORKS, i64 %lane
  %parameters = getelementptr %State, ptr %s, i64 0, i32 PARAMETERS
  %verdicts = getelementptr %State, ptr %s, i64 0, i32 VERDICT
  %verdict_at = getelementptr %State, ptr %s, i64 0, i32 VERDICT, i64 %lane
  %count = call i64 @word(ptr %job, i64 COUNT)
  br label %next
next:
  %index = load i64, ptr %next_at
  %have = icmp slt i64 %index, %count
  br i1 %have, label %read, label %rest
rest:
  store i64 0, ptr %alive_at
  ret void
read:
  %index_next = add i64 %index, 1
  store i64 %index_next, ptr %next_at
  %answer = call ptr @row(ptr %job, i64 ANSWERS, i64 %index, i64 N)
  call void @blank(ptr %answer, i64 N)
  %residual = call ptr @row(ptr %job, i64 RESIDUALS, i64 %index, i64 K)
  call void @blank(ptr %residual, i64 K)
  br i1 %late, label %stop, label %load
stop:
  call void @ending(ptr %job, ptr %s, i64 %index, i64 STOPPED, i64 0, i64 0)
  br label %next
load:
  %row = call ptr @problem(ptr %job, i64 %index)
  call void @put(ptr %parameters, i64 %lane, ptr %row, i64 M)
  br label %check
check:
  %k = phi i64 [ 0, %load ], [ %k_next, %check ]
  %zero = phi double [ 0.0, %load ], [ %zero_next, %check ]
  %number_at = getelementptr double, ptr %row, i64 %k
  %number = load double, ptr %number_at
  %nothing = fmul double %number, 0.0
  %zero_next = fadd double %zero, %nothing
  %k_next = add i64 %k, 1
  %k_more = icmp slt i64 %k_next, M
  br i1 %k_more, label %check, label %judge
judge:
  call void @guard(ptr %parameters, ptr %verdicts)
  %verdict = load double, ptr %verdict_at
  %sensible = fcmp ogt double %verdict, 0.0
  %finite = fcmp oeq double %zero_next, 0.0
  %good = and i1 %sensible, %finite
  br i1 %good, label %accept, label %refuse
refuse:
  call void @ending(ptr %job, ptr %s, i64 %index, i64 2, i64 0, i64 0)
  br label %next
accept:
  %index_at = getelementptr %State, ptr %s, i64 0, i32 PROBLEM, i64 %lane
  store i64 %index, ptr %index_at
  %tries_at = getelementptr %State, ptr %s, i64 0, i32 TRIES, i64 %lane
  store i64 0, ptr %tries_at
  %steps_at = getelementptr %State, ptr %s, i64 0, i32 STEPS, i64 %lane
  store i64 0, ptr %steps_at
  %taken_at = getelementptr %State, ptr %s, i64 0, i32 TAKEN, i64 %lane
  store i32 -1, ptr %taken_at
  %distances_at = getelementptr %State, ptr %s, i64 0, i32 DISTANCES, i64 %lane
  store <8 x i32> splat (i32 2147483647), ptr %distances_at
  %best_at = getelementptr %State, ptr %s, i64 0, i32 LEAST_ERROR, i64 %lane
  store double 0x7FF0000000000000, ptr %best_at
  store i64 1, ptr %alive_at
  call void @start(ptr %job, ptr %s, ptr %to, i64 %lane, i64 %lane)
  ret void
}

; Solve the problems of a job; returns how many of them are not solved.
;
; `plan` holds the first words of the job, `call` the others.
define i64 @search(ptr %plan, ptr %call) {
entry:
  %s = alloca %State, align 64
  %job = alloca [JOB_WORDS x i64], align 64
  call void @llvm.memset.p0.i64(ptr %s, i8 0, i64 ptrtoint (ptr getelementptr (%State, ptr null, i64 1) to i64), i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %job, ptr %plan, i64 PLAN_BYTES, i1 false)
  %rest = getelementptr i64, ptr %job, i64 PLAN_WORDS
  call void @llvm.memcpy.p0.p0.i64(ptr %rest, ptr %call, i64 CALL_BYTES, i1 false)
  %count = call i64 @word(ptr %job, i64 COUNT)
  %problems = call ptr @address(ptr %job, i64 PROBLEMS)
  %together = call i64 @word(ptr %job, i64 TOGETHER)
  %used = call i64 @word(ptr %job, i64 LANES_USED)
  %ways0 = getelementptr %State, ptr %s, i64 0, i32 HERE
  %ways1 = getelementptr %State, ptr %s, i64 0, i32 THERE
  %parameters = getelementptr %State, ptr %s, i64 0, i32 PARAMETERS
  %shared = getelementptr %State, ptr %s, i64 0, i32 SHARED
  %constants = call ptr @address(ptr %job, i64 CONSTANTS)
  %errors = getelementptr %State, ptr %s, i64 0, i32 ERRORS
  %ages = getelementptr %State, ptr %s, i64 0, i32 AGE
  %works = getelementptr %State, ptr %s, i64 0, i32 WORKS
  %lasts = getelementptr %State, ptr %s, i64 0, i32 LAST_ERROR
  %all_tries = getelementptr %State, ptr %s, i64 0, i32 TRIES
  %all_steps = getelementptr %State, ptr %s, i64 0, i32 STEPS
  %left_at = getelementptr %State, ptr %s, i64 0, i32 LEFT
  store i64 %count, ptr %left_at
  %one = icmp ne i64 %together, 0
  %tolerances = call ptr @address(ptr %job, i64 TOLERANCES)
  %max_age = call i64 @word(ptr %job, i64 MOST_STEPS)
  %max_ages = call <LANES x i64> @same(i64 %max_age)
  %stale_from = call i64 @word(ptr %job, i64 STALE_FROM)
  %stale_froms = call <LANES x i64> @same(i64 %stale_from)
  %patient_after = call i64 @word(ptr %job, i64 PATIENT_AFTER)
  %patient_afters = call <LANES x i64> @same(i64 %patient_after)
  %patient_age = call i64 @word(ptr %job, i64 PATIENT_STEPS)
  %patient_ages = call <LANES x i64> @same(i64 %patient_age)
  %max_tries = call i64 @word(ptr %job, i64 MOST_STARTS)
  %reals = call ptr @address(ptr %job, i64 STALENESS)
  %factor = load double, ptr %reals
  %factors = call <LANES x double> @all(double %factor)
  %floor_at = getelementptr double, ptr %reals, i64 1
  %floor = load double, ptr %floor_at
  %floors = call <LANES x double> @all(double %floor)
  br label %begin
begin:
  %b = phi i64 [ 0, %entry ], [ %b_next, %begun ]
  %has_shared = icmp sgt i64 C, 0
  br i1 %has_shared, label %fill, label %filled
fill:
  call void @put(ptr %shared, i64 %b, ptr %constants, i64 C)
  br label %filled
filled:
  %b_first = icmp eq i64 %b, 0
  %b_other = xor i1 %b_first, true
  %b_shares = and i1 %one, %b_other
  br i1 %b_shares, label %share, label %own
share:
  %first_work = load i64, ptr %works
  %b_works_at = getelementptr i64, ptr %works, i64 %b
  store i64 %first_work, ptr %b_works_at
  %has_problem = icmp ne i64 %first_work, 0
  br i1 %has_problem, label %join, label %begun
join:
  call void @put(ptr %parameters, i64 %b, ptr %problems, i64 M)
  call void @start(ptr %job, ptr %s, ptr %ways0, i64 %b, i64 0)
  br label %begun
own:
  call void @take(ptr %job, ptr %s, ptr %ways0, i64 %b, i1 false)
  br label %begun
begun:
  %b_next = add i64 %b, 1
  %b_more = icmp slt i64 %b_next, %used
  br i1 %b_more, label %begin, label %ready
ready:
  %left0 = load i64, ptr %left_at
  %work = icmp sgt i64 %left0, 0
  br i1 %work, label %round, label %exit
round:
  %now = phi ptr [ %ways0, %ready ], [ %then, %rounded ]
  %then = phi ptr [ %ways1, %ready ], [ %now, %rounded ]
  %total = phi i64 [ 0, %ready ], [ %total_next, %rounded ]
  %total_next = add i64 %total, LANES
  call void @step(STEP_INPUTS, ptr %then, ptr %errors)
  br label %sum
sum:
  %k = phi i64 [ 0, %round ], [ %k_next, %sum ]
  %good = phi <LANES x i1> [ splat (i1 true), %round ], [ %good_next, %sum ]
  %error = phi <LANES x double> [ zeroinitializer, %round ], [ %error_next, %sum ]
  %e_at = getelementptr <LANES x double>, ptr %errors, i64 %k
  %e = load <LANES x double>, ptr %e_at, align 8
  %t_at = getelementptr double, ptr %tolerances, i64 %k
  %t = load double, ptr %t_at
  %ts = call <LANES x double> @all(double %t)
  %small = fcmp ole <LANES x double> %e, %ts
  %good_next = and <LANES x i1> %good, %small
  %error_next = fadd <LANES x double> %error, %e
  %k_next = add i64 %k, 1
  %k_more = icmp slt i64 %k_next, K
  br i1 %k_more, label %sum, label %judge
judge:
  %alive = load <LANES x i64>, ptr %works, align 8
  %steps_before = load <LANES x i64>, ptr %all_steps, align 8
  %steps_now = add <LANES x i64> %steps_before, %alive
  store <LANES x i64> %steps_now, ptr %all_steps, align 8
  %age_before = load <LANES x i64>, ptr %ages, align 8
  %age = add <LANES x i64> %age_before, %alive
  store <LANES x i64> %age, ptr %ages, align 8
  %last = load <LANES x double>, ptr %lasts, align 8
  store <LANES x double> %error_next, ptr %lasts, align 8
  %tries_now = load <LANES x i64>, ptr %all_tries, align 8
  %patient = icmp sgt <LANES x i64> %tries_now, %patient_afters
  %age_limit = select <LANES x i1> %patient, <LANES x i64> %patient_ages, <LANES x i64> %max_ages
  %old = icmp sge <LANES x i64> %age, %age_limit
  %ripe = icmp sge <LANES x i64> %age, %stale_froms
  %hoped = fmul <LANES x double> %factors, %last
  %slow = fcmp ugt <LANES x double> %error_next, %hoped
  %far = fcmp ugt <LANES x double> %error_next, %floors
  %broken = fcmp uno <LANES x double> %error_next, zeroinitializer
  %impatient = xor <LANES x i1> %patient, splat (i1 true)
  %stale0 = and <LANES x i1> %ripe, %slow
  %stale1 = and <LANES x i1> %stale0, %far
  %stale2 = and <LANES x i1> %stale1, %impatient
  %stale3 = or <LANES x i1> %stale2, %old
  %stale4 = or <LANES x i1> %stale3, %broken
  %late = call i1 @late(ptr %job)
  %late0 = insertelement <LANES x i1> poison, i1 %late, i32 0
  %lates = shufflevector <LANES x i1> %late0, <LANES x i1> poison, <LANES x i32> zeroinitializer
  %stale5 = or <LANES x i1> %stale4, %lates
  %stale = or <LANES x i1> %stale5, %good_next
  %working = icmp ne <LANES x i64> %alive, zeroinitializer
  %ended = and <LANES x i1> %stale, %working
  %ended_bits = bitcast <LANES x i1> %ended to MASK
  %good_bits = bitcast <LANES x i1> %good_next to MASK
  %some = icmp ne MASK %ended_bits, 0
  br i1 %some, label %each, label %rounded
each:
  %bits = phi MASK [ %ended_bits, %judge ], [ %bits_next, %done ]
  %bits_wide = zext MASK %bits to i64
  %lane = call i64 @llvm.cttz.i64(i64 %bits_wide, i1 true)
  %lane_bits = trunc i64 %lane to MASK
  %bits_less = sub MASK %bits, 1
  %bits_next = and MASK %bits, %bits_less
  %slot = select i1 %one, i64 0, i64 %lane
  %index_at = getelementptr %State, ptr %s, i64 0, i32 PROBLEM, i64 %slot
  %index = load i64, ptr %index_at
  %answer = call ptr @row(ptr %job, i64 ANSWERS, i64 %index, i64 N)
  %residual = call ptr @row(ptr %job, i64 RESIDUALS, i64 %index, i64 K)
  %tries_at = getelementptr %State, ptr %s, i64 0, i32 TRIES, i64 %slot
  %tries = load i64, ptr %tries_at
  %steps_at = getelementptr %State, ptr %s, i64 0, i32 STEPS, i64 %slot
  %own_steps = load i64, ptr %steps_at
  %steps = select i1 %one, i64 %total_next, i64 %own_steps
  %good_shifted = lshr MASK %good_bits, %lane_bits
  %good_bit = and MASK %good_shifted, 1
  %is_good = icmp ne MASK %good_bit, 0
  br i1 %is_good, label %solved, label %again
again:
  %best_at = getelementptr %State, ptr %s, i64 0, i32 LEAST_ERROR, i64 %slot
  %best = load double, ptr %best_at
  %own_at = getelementptr %State, ptr %s, i64 0, i32 LAST_ERROR, i64 %lane
  %own_error = load double, ptr %own_at
  %better = fcmp olt double %own_error, %best
  br i1 %better, label %keep, label %retry
keep:
  store double %own_error, ptr %best_at
  call void @get(ptr %answer, ptr %now, i64 %lane, i64 N)
  call void @get(ptr %residual, ptr %errors, i64 %lane, i64 K)
  br label %retry
retry:
  %all_tried = icmp sge i64 %tries, %max_tries
  %spent = or i1 %all_tried, %late
  br i1 %spent, label %give_up, label %restart
give_up:  ; where all lanes stop at once, the nearest of them is kept
  %others = icmp ne MASK %bits_next, 0
  %stopped_others = and i1 %others, %late
  %wait = and i1 %stopped_others, %one
  br i1 %wait, label %done, label %failed
restart:
  call void @start(ptr %job, ptr %s, ptr %then, i64 %lane, i64 %slot)
  br label %done
failed:
  %status = select i1 %late, i64 STOPPED, i64 1
  call void @ending(ptr %job, ptr %s, i64 %index, i64 %status, i64 %steps, i64 %tries)
  br label %finished
solved:
  call void @get(ptr %answer, ptr %now, i64 %lane, i64 N)
  call void @get(ptr %residual, ptr %errors, i64 %lane, i64 K)
  call void @ending(ptr %job, ptr %s, i64 %index, i64 0, i64 %steps, i64 %tries)
  br label %finished
finished:
  br i1 %one, label %exit, label %follow
follow:
  call void @take(ptr %job, ptr %s, ptr %then, i64 %lane, i1 %late)
  br label %done
done:
  %lane_more = icmp ne MASK %bits_next, 0
  br i1 %lane_more, label %each, label %settled
settled:
  %left3 = load i64, ptr %left_at
  %go_on = icmp sgt i64 %left3, 0
  br i1 %go_on, label %rounded, label %exit
rounded:
  br label %round
exit:
  %failures_at = getelementptr %State, ptr %s, i64 0, i32 FAILURES
  %failures = load i64, ptr %failures_at
  ret i64 %failures
}

; The same number in every lane.
define internal <LANES x i64> @same(i64 %x) alwaysinline {
  %one = insertelement <LANES x i64> poison, i64 %x, i32 0
  %all = shufflevector <LANES x i64> %one, <LANES x i64> poison, <LANES x i32> zeroinitializer
  ret <LANES x i64> %all
}

define internal <LANES x double> @all(double %x) alwaysinline {
  %one = insertelement <LANES x double> poison, double %x, i32 0
  %all = shufflevector <LANES x double> %one, <LANES x double> poison, <LANES x i32> zeroinitializer
  ret <LANES x double> %all
}

declare i64 @llvm.cttz.i64(i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
