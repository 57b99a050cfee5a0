; Multi-start search: iterate a step on LANES problems at once until each is solved.
;
; Words in capitals are put in by search.py: LANES, N (unknowns), M (parameters of a
; problem), K (errors), and products of them. @step is the compiled step: it reads the
; unknowns and parameters of all lanes, column by column, and writes the next unknowns
; and the errors of the present ones.
;
; A lane that has solved its problem takes the next one at once; a lane that has not come
; nearer starts again from another place. Starts come from the caller, then from a table
; of known answers (nearest first, searched in the grid cell of the problem), then at
; random from a key that depends on the problem alone.

%State = type {
  [NW x double],   ;  0 unknowns, one way round
  [NW x double],   ;  1 unknowns, the other way round
  [MW x double],   ;  2 parameters
  [KW x double],   ;  3 errors
  [LANES x i64],   ;  4 steps since the start
  [LANES x i64],   ;  5 whether the lane works
  [LANES x double],;  6 error at the step before
  [LANES x i64],   ;  7 which problem
  [LANES x i64],   ;  8 starts made
  [LANES x i64],   ;  9 steps made for the problem
  [LANES x i64],   ; 10 key of the problem
  [LANES x float], ; 11 distance of the last start taken from the table
  [LANES x double],; 12 least error at the end of a start
  [NW x double],   ; 13 the unknowns there
  i64,             ; 14 the next problem
  i64              ; 15 problems to finish
}

; The words of a job.
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
  %which = call ptr @address(ptr %job, i64 16)
  %axis_at = getelementptr i64, ptr %which, i64 %axis
  %element = load i64, ptr %axis_at
  %value_at = getelementptr double, ptr %problem, i64 %element
  %value = load double, ptr %value_at
  %grid = call ptr @address(ptr %job, i64 9)
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

; Find the nearest table entry that is farther than the last one taken; -1 for none.
; Entries lie in packs of eight, element by element, so that eight are compared at once.
define internal i64 @nearest(ptr %job, ptr %problem, ptr %taken) {
entry:
  %x = call i64 @grid(ptr %job, ptr %problem, i64 0)
  %y = call i64 @grid(ptr %job, ptr %problem, i64 1)
  %z = call i64 @grid(ptr %job, ptr %problem, i64 2)
  %grid = call ptr @address(ptr %job, i64 9)
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
  %offsets = call ptr @address(ptr %job, i64 8)
  %first_at = getelementptr i64, ptr %offsets, i64 %cell
  %first = load i64, ptr %first_at
  %cell_next = add i64 %cell, 1
  %end_at = getelementptr i64, ptr %offsets, i64 %cell_next
  %end = load i64, ptr %end_at
  %features = call ptr @address(ptr %job, i64 6)
  %scales = call ptr @address(ptr %job, i64 15)
  %wanted = alloca <8 x float>, i64 M, align 32
  %limit1 = load float, ptr %taken
  %limit0 = insertelement <8 x float> poison, float %limit1, i32 0
  %limit = shufflevector <8 x float> %limit0, <8 x float> poison, <8 x i32> zeroinitializer
  br label %scale
scale:
  %s = phi i64 [ 0, %entry ], [ %s_next, %scale ]
  %p_at = getelementptr double, ptr %problem, i64 %s
  %p = load double, ptr %p_at
  %f_at = getelementptr double, ptr %scales, i64 %s
  %f = load double, ptr %f_at
  %pf = fmul double %p, %f
  %pf32 = fptrunc double %pf to float
  %pf0 = insertelement <8 x float> poison, float %pf32, i32 0
  %pf8 = shufflevector <8 x float> %pf0, <8 x float> poison, <8 x i32> zeroinitializer
  %w_at = getelementptr <8 x float>, ptr %wanted, i64 %s
  store <8 x float> %pf8, ptr %w_at, align 32
  %s_next = add i64 %s, 1
  %s_more = icmp slt i64 %s_next, M
  br i1 %s_more, label %scale, label %head
head:
  %any = icmp slt i64 %first, %end
  br i1 %any, label %row, label %none
row:
  %r = phi i64 [ %first, %head ], [ %r_next, %row_end ]
  %best = phi <8 x i32> [ splat (i32 -1), %head ], [ %best_next, %row_end ]
  %least = phi <8 x float> [ splat (float 0x7FF0000000000000), %head ], [ %least_next, %row_end ]
  %start = mul i64 %r, M
  %base = getelementptr <8 x float>, ptr %features, i64 %start
  br label %sum
sum:
  %k = phi i64 [ 0, %row ], [ %k_next, %sum ]
  %d = phi <8 x float> [ zeroinitializer, %row ], [ %d_next, %sum ]
  %a_at = getelementptr <8 x float>, ptr %base, i64 %k
  %a = load <8 x float>, ptr %a_at, align 4
  %b_at = getelementptr <8 x float>, ptr %wanted, i64 %k
  %b = load <8 x float>, ptr %b_at, align 32
  %ab = fsub <8 x float> %a, %b
  %ab2 = fmul contract <8 x float> %ab, %ab
  %d_next = fadd contract <8 x float> %d, %ab2
  %k_next = add i64 %k, 1
  %k_more = icmp slt i64 %k_next, M
  br i1 %k_more, label %sum, label %row_end
row_end:
  %fresh = fcmp ogt <8 x float> %d_next, %limit
  %nearer = fcmp olt <8 x float> %d_next, %least
  %better = and <8 x i1> %fresh, %nearer
  %r32 = trunc i64 %r to i32
  %r0 = insertelement <8 x i32> poison, i32 %r32, i32 0
  %r8 = shufflevector <8 x i32> %r0, <8 x i32> poison, <8 x i32> zeroinitializer
  %best_next = select <8 x i1> %better, <8 x i32> %r8, <8 x i32> %best
  %least_next = select <8 x i1> %better, <8 x float> %d_next, <8 x float> %least
  %r_next = add i64 %r, 1
  %r_more = icmp slt i64 %r_next, %end
  br i1 %r_more, label %row, label %choose
choose:
  %c = phi i64 [ 0, %row_end ], [ %c_next, %choose ]
  %won = phi i64 [ -1, %row_end ], [ %won_next, %choose ]
  %nearest = phi float [ 0x7FF0000000000000, %row_end ], [ %nearest_next, %choose ]
  %one = extractelement <8 x float> %least_next, i64 %c
  %one_row = extractelement <8 x i32> %best_next, i64 %c
  %one_wide = sext i32 %one_row to i64
  %one_start = mul i64 %one_wide, 8
  %one_place = add i64 %one_start, %c
  %wins = fcmp olt float %one, %nearest
  %won_next = select i1 %wins, i64 %one_place, i64 %won
  %nearest_next = select i1 %wins, float %one, float %nearest
  %c_next = add i64 %c, 1
  %c_more = icmp slt i64 %c_next, 8
  br i1 %c_more, label %choose, label %found
found:
  store float %nearest_next, ptr %taken
  ret i64 %won_next
none:
  ret i64 -1
}

; Put a lane at its next starting place.
define internal void @start(ptr %job, ptr %s, ptr %to, i64 %lane, i64 %slot) {
entry:
  %age_at = getelementptr %State, ptr %s, i64 0, i32 4, i64 %lane
  store i64 0, ptr %age_at
  %last_at = getelementptr %State, ptr %s, i64 0, i32 6, i64 %lane
  store double 0x7FF0000000000000, ptr %last_at
  %tries_at = getelementptr %State, ptr %s, i64 0, i32 8, i64 %slot
  %tries = load i64, ptr %tries_at
  %tries_next = add i64 %tries, 1
  store i64 %tries_next, ptr %tries_at
  %index_at = getelementptr %State, ptr %s, i64 0, i32 7, i64 %slot
  %index = load i64, ptr %index_at
  %seeds = call ptr @address(ptr %job, i64 2)
  %given = icmp ne ptr %seeds, null
  %first = icmp eq i64 %tries, 0
  %use_seed = and i1 %given, %first
  br i1 %use_seed, label %seed, label %look
seed:
  %seed_start = mul i64 %index, N
  %seed_row = getelementptr double, ptr %seeds, i64 %seed_start
  call void @put(ptr %to, i64 %lane, ptr %seed_row, i64 N)
  ret void
look:
  %numbers = call ptr @address(ptr %job, i64 13)
  %table_tries = call i64 @word(ptr %numbers, i64 5)
  %still = icmp slt i64 %tries, %table_tries
  br i1 %still, label %table, label %random
table:
  %problems = call ptr @address(ptr %job, i64 1)
  %problem_start = mul i64 %index, M
  %problem = getelementptr double, ptr %problems, i64 %problem_start
  %taken = getelementptr %State, ptr %s, i64 0, i32 11, i64 %slot
  %row = call i64 @nearest(ptr %job, ptr %problem, ptr %taken)
  %found = icmp sge i64 %row, 0
  br i1 %found, label %known, label %random
known:
  %starts = call ptr @address(ptr %job, i64 7)
  %start = mul i64 %row, N
  %start_row = getelementptr double, ptr %starts, i64 %start
  call void @put(ptr %to, i64 %lane, ptr %start_row, i64 N)
  ret void
random:
  %key_at = getelementptr %State, ptr %s, i64 0, i32 10, i64 %slot
  %key = load i64, ptr %key_at
  %salt = call i64 @mix(i64 %tries)
  %key_try = xor i64 %key, %salt
  %lower = call ptr @address(ptr %job, i64 11)
  %span = call ptr @address(ptr %job, i64 12)
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

; Write the answer of a problem: unknowns, errors, and how it ended.
define internal void @answer(ptr %job, i64 %index, i64 %status, i64 %steps, i64 %tries) {
  %infos = call ptr @address(ptr %job, i64 5)
  %info_start = mul i64 %index, 3
  %info = getelementptr i64, ptr %infos, i64 %info_start
  store i64 %status, ptr %info
  %steps_at = getelementptr i64, ptr %info, i64 1
  store i64 %steps, ptr %steps_at
  %tries_at = getelementptr i64, ptr %info, i64 2
  store i64 %tries, ptr %tries_at
  ret void
}

; Give a lane the next problem that is made of numbers; let it rest when there is none.
define internal void @take(ptr %job, ptr %s, ptr %to, i64 %lane) {
entry:
  %next_at = getelementptr %State, ptr %s, i64 0, i32 14
  %left_at = getelementptr %State, ptr %s, i64 0, i32 15
  %alive_at = getelementptr %State, ptr %s, i64 0, i32 5, i64 %lane
  %problems = call ptr @address(ptr %job, i64 1)
  %count = call i64 @word(ptr %job, i64 0)
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
  %row_start = mul i64 %index, M
  %row = getelementptr double, ptr %problems, i64 %row_start
  br label %check
check:
  %k = phi i64 [ 0, %read ], [ %k_next, %check ]
  %zero = phi double [ 0.0, %read ], [ %zero_next, %check ]
  %key = phi i64 [ 0, %read ], [ %key_next, %check ]
  %number_at = getelementptr double, ptr %row, i64 %k
  %number = load double, ptr %number_at
  %bits = load i64, ptr %number_at
  %nothing = fmul double %number, 0.0
  %zero_next = fadd double %zero, %nothing
  %key_mixed = call i64 @mix(i64 %key)
  %key_next = xor i64 %key_mixed, %bits
  %k_next = add i64 %k, 1
  %k_more = icmp slt i64 %k_next, M
  br i1 %k_more, label %check, label %judge
judge:
  %finite = fcmp oeq double %zero_next, 0.0
  br i1 %finite, label %accept, label %refuse
refuse:
  call void @answer(ptr %job, i64 %index, i64 2, i64 0, i64 0)
  %left = load i64, ptr %left_at
  %left_next = sub i64 %left, 1
  store i64 %left_next, ptr %left_at
  br label %next
accept:
  %numbers = call ptr @address(ptr %job, i64 13)
  %salt = call i64 @word(ptr %numbers, i64 6)
  %salt_mixed = call i64 @mix(i64 %salt)
  %key_salted = xor i64 %key_next, %salt_mixed
  %key_at = getelementptr %State, ptr %s, i64 0, i32 10, i64 %lane
  store i64 %key_salted, ptr %key_at
  %index_at = getelementptr %State, ptr %s, i64 0, i32 7, i64 %lane
  store i64 %index, ptr %index_at
  %tries_at = getelementptr %State, ptr %s, i64 0, i32 8, i64 %lane
  store i64 0, ptr %tries_at
  %steps_at = getelementptr %State, ptr %s, i64 0, i32 9, i64 %lane
  store i64 0, ptr %steps_at
  %dist_at = getelementptr %State, ptr %s, i64 0, i32 11, i64 %lane
  store float -1.0, ptr %dist_at
  %best_at = getelementptr %State, ptr %s, i64 0, i32 12, i64 %lane
  store double 0x7FF0000000000000, ptr %best_at
  store i64 1, ptr %alive_at
  %parameters = getelementptr %State, ptr %s, i64 0, i32 2
  call void @put(ptr %parameters, i64 %lane, ptr %row, i64 M)
  call void @start(ptr %job, ptr %s, ptr %to, i64 %lane, i64 %lane)
  ret void
}

; Solve a job; returns the number of steps made on all lanes together.
define i64 @search(ptr %job) {
entry:
  %s = alloca %State, align 64
  %ways0 = getelementptr %State, ptr %s, i64 0, i32 0
  %ways1 = getelementptr %State, ptr %s, i64 0, i32 1
  %parameters = getelementptr %State, ptr %s, i64 0, i32 2
  %errors = getelementptr %State, ptr %s, i64 0, i32 3
  call void @llvm.memset.p0.i64(ptr %s, i8 0, i64 ptrtoint (ptr getelementptr (%State, ptr null, i64 1) to i64), i1 false)
  %numbers = call ptr @address(ptr %job, i64 13)
  %reals = call ptr @address(ptr %job, i64 14)
  %max_age = call i64 @word(ptr %numbers, i64 0)
  %stale_from = call i64 @word(ptr %numbers, i64 1)
  %patient_after = call i64 @word(ptr %numbers, i64 2)
  %patient_age = call i64 @word(ptr %numbers, i64 3)
  %max_tries = call i64 @word(ptr %numbers, i64 4)
  %together = call i64 @word(ptr %numbers, i64 7)
  %one = icmp ne i64 %together, 0
  %used = call i64 @word(ptr %numbers, i64 8)
  %factor = load double, ptr %reals
  %floor_at = getelementptr double, ptr %reals, i64 1
  %floor = load double, ptr %floor_at
  %count = call i64 @word(ptr %job, i64 0)
  %left_at = getelementptr %State, ptr %s, i64 0, i32 15
  store i64 %count, ptr %left_at
  %tolerances = call ptr @address(ptr %job, i64 10)
  %answers = call ptr @address(ptr %job, i64 3)
  %residuals = call ptr @address(ptr %job, i64 4)
  br label %begin
begin:
  %b = phi i64 [ 0, %entry ], [ %b_next, %begun ]
  %b_first = icmp eq i64 %b, 0
  %b_other = xor i1 %b_first, true
  %b_shares = and i1 %one, %b_other
  br i1 %b_shares, label %share, label %own
share:
  %first_alive_at = getelementptr %State, ptr %s, i64 0, i32 5, i64 0
  %first_alive = load i64, ptr %first_alive_at
  %b_alive_at = getelementptr %State, ptr %s, i64 0, i32 5, i64 %b
  store i64 %first_alive, ptr %b_alive_at
  %has_problem = icmp ne i64 %first_alive, 0
  br i1 %has_problem, label %join, label %begun
join:
  %all_rows = call ptr @address(ptr %job, i64 1)
  call void @put(ptr %parameters, i64 %b, ptr %all_rows, i64 M)
  call void @start(ptr %job, ptr %s, ptr %ways0, i64 %b, i64 0)
  br label %begun
own:
  call void @take(ptr %job, ptr %s, ptr %ways0, i64 %b)
  br label %begun
begun:
  %b_next = add i64 %b, 1
  %b_more = icmp slt i64 %b_next, %used
  br i1 %b_more, label %begin, label %ready
ready:
  %left0 = load i64, ptr %left_at
  %work = icmp sgt i64 %left0, 0
  br i1 %work, label %round, label %exit0
exit0:
  ret i64 0
round:
  %now = phi ptr [ %ways0, %ready ], [ %then, %rounded ]
  %then = phi ptr [ %ways1, %ready ], [ %now, %rounded ]
  %total = phi i64 [ 0, %ready ], [ %total_next, %rounded ]
  %total_next = add i64 %total, LANES
  call void @step(ptr %now, ptr %parameters, ptr %then, ptr %errors)
  br label %each
each:
  %lane = phi i64 [ 0, %round ], [ %lane_next, %done ]
  %slot = select i1 %one, i64 0, i64 %lane
  %alive_at = getelementptr %State, ptr %s, i64 0, i32 5, i64 %lane
  %alive = load i64, ptr %alive_at
  %works = icmp ne i64 %alive, 0
  br i1 %works, label %look, label %done
look:
  %steps_at = getelementptr %State, ptr %s, i64 0, i32 9, i64 %slot
  %steps = load i64, ptr %steps_at
  %steps_next = add i64 %steps, 1
  store i64 %steps_next, ptr %steps_at
  %age_at = getelementptr %State, ptr %s, i64 0, i32 4, i64 %lane
  %age_before = load i64, ptr %age_at
  %age = add i64 %age_before, 1
  store i64 %age, ptr %age_at
  br label %sum
sum:
  %k = phi i64 [ 0, %look ], [ %k_next, %sum ]
  %good = phi i1 [ true, %look ], [ %good_next, %sum ]
  %error = phi double [ 0.0, %look ], [ %error_next, %sum ]
  %down = mul i64 %k, LANES
  %at = add i64 %down, %lane
  %e_at = getelementptr double, ptr %errors, i64 %at
  %e = load double, ptr %e_at
  %t_at = getelementptr double, ptr %tolerances, i64 %k
  %t = load double, ptr %t_at
  %small = fcmp ole double %e, %t
  %good_next = and i1 %good, %small
  %error_next = fadd double %error, %e
  %k_next = add i64 %k, 1
  %k_more = icmp slt i64 %k_next, K
  br i1 %k_more, label %sum, label %judge
judge:
  %tries_at = getelementptr %State, ptr %s, i64 0, i32 8, i64 %slot
  %tries = load i64, ptr %tries_at
  br i1 %good_next, label %solved, label %unsolved
unsolved:
  %last_at = getelementptr %State, ptr %s, i64 0, i32 6, i64 %lane
  %last = load double, ptr %last_at
  store double %error_next, ptr %last_at
  %patient = icmp sgt i64 %tries, %patient_after
  %age_limit = select i1 %patient, i64 %patient_age, i64 %max_age
  %old = icmp sge i64 %age, %age_limit
  %ripe = icmp sge i64 %age, %stale_from
  %hoped = fmul double %factor, %last
  %slow = fcmp ugt double %error_next, %hoped
  %far = fcmp ugt double %error_next, %floor
  %broken = fcmp uno double %error_next, 0.0
  %impatient = xor i1 %patient, true
  %stale0 = and i1 %ripe, %slow
  %stale1 = and i1 %stale0, %far
  %stale2 = and i1 %stale1, %impatient
  %stale3 = or i1 %stale2, %old
  %stale = or i1 %stale3, %broken
  br i1 %stale, label %again, label %done
again:
  %best_at = getelementptr %State, ptr %s, i64 0, i32 12, i64 %slot
  %best = load double, ptr %best_at
  %kept = getelementptr %State, ptr %s, i64 0, i32 13
  %kept_start = mul i64 %slot, N
  %kept_row = getelementptr double, ptr %kept, i64 %kept_start
  %better = fcmp olt double %error_next, %best
  br i1 %better, label %keep, label %retry
keep:
  store double %error_next, ptr %best_at
  call void @get(ptr %kept_row, ptr %now, i64 %lane, i64 N)
  %keep_index_at = getelementptr %State, ptr %s, i64 0, i32 7, i64 %slot
  %keep_index = load i64, ptr %keep_index_at
  %keep_start = mul i64 %keep_index, K
  %keep_row = getelementptr double, ptr %residuals, i64 %keep_start
  call void @get(ptr %keep_row, ptr %errors, i64 %lane, i64 K)
  br label %retry
retry:
  %spent = icmp sge i64 %tries, %max_tries
  br i1 %spent, label %failed, label %restart
restart:
  call void @start(ptr %job, ptr %s, ptr %then, i64 %lane, i64 %slot)
  br label %done
failed:
  %f_index_at = getelementptr %State, ptr %s, i64 0, i32 7, i64 %slot
  %f_index = load i64, ptr %f_index_at
  %f_start = mul i64 %f_index, N
  %f_row = getelementptr double, ptr %answers, i64 %f_start
  call void @llvm.memcpy.p0.p0.i64(ptr %f_row, ptr %kept_row, i64 NBYTES, i1 false)
  call void @answer(ptr %job, i64 %f_index, i64 1, i64 %steps_next, i64 %tries)
  br label %finished
solved:
  %s_index_at = getelementptr %State, ptr %s, i64 0, i32 7, i64 %slot
  %s_index = load i64, ptr %s_index_at
  %s_start = mul i64 %s_index, N
  %s_row = getelementptr double, ptr %answers, i64 %s_start
  call void @get(ptr %s_row, ptr %now, i64 %lane, i64 N)
  %r_start = mul i64 %s_index, K
  %r_row = getelementptr double, ptr %residuals, i64 %r_start
  call void @get(ptr %r_row, ptr %errors, i64 %lane, i64 K)
  call void @answer(ptr %job, i64 %s_index, i64 0, i64 %steps_next, i64 %tries)
  br label %finished
finished:
  %left1 = load i64, ptr %left_at
  %left2 = sub i64 %left1, 1
  store i64 %left2, ptr %left_at
  br i1 %one, label %exit, label %follow
follow:
  call void @take(ptr %job, ptr %s, ptr %then, i64 %lane)
  br label %done
done:
  %lane_next = add i64 %lane, 1
  %lane_more = icmp slt i64 %lane_next, LANES
  br i1 %lane_more, label %each, label %rounded
rounded:
  %left3 = load i64, ptr %left_at
  %go_on = icmp sgt i64 %left3, 0
  br i1 %go_on, label %round, label %exit
exit:
  ret i64 %total_next
}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
