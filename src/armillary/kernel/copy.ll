; Moving rows between arrays of any strides and the compact rows of a block. REAL and
; BYTES are the type of a number and its size, put in by loop.py. @record makes room for
; rows to compute again.

; Copy `rows` rows of d0 x d1 x d2 numbers from one set of strides to another; rows beyond
; the last of `count` repeat it, so that padding computes on honest numbers.
define internal void @copy(ptr %to, ptr %from, i64 %rows, i64 %count, i64 %to_row,
    i64 %from_row, i64 %d0, i64 %d1, i64 %d2, i64 %t0, i64 %t1, i64 %t2,
    i64 %s0, i64 %s1, i64 %s2) noinline #0 {
entry:
  %last = sub i64 %count, 1
  br label %row
row:
  %r = phi i64 [ 0, %entry ], [ %r_next, %row_end ]
  %short = icmp slt i64 %r, %last
  %source = select i1 %short, i64 %r, i64 %last
  %t_offset = mul i64 %r, %to_row
  %s_offset = mul i64 %source, %from_row
  %t_row = getelementptr i8, ptr %to, i64 %t_offset
  %s_row = getelementptr i8, ptr %from, i64 %s_offset
  br label %first
first:
  %i = phi i64 [ 0, %row ], [ %i_next, %first_end ]
  %ti = mul i64 %i, %t0
  %si = mul i64 %i, %s0
  %t_first = getelementptr i8, ptr %t_row, i64 %ti
  %s_first = getelementptr i8, ptr %s_row, i64 %si
  br label %second
second:
  %j = phi i64 [ 0, %first ], [ %j_next, %second_end ]
  %tj = mul i64 %j, %t1
  %sj = mul i64 %j, %s1
  %t_second = getelementptr i8, ptr %t_first, i64 %tj
  %s_second = getelementptr i8, ptr %s_first, i64 %sj
  br label %third
third:
  %k = phi i64 [ 0, %second ], [ %k_next, %third ]
  %tk = mul i64 %k, %t2
  %sk = mul i64 %k, %s2
  %t_third = getelementptr i8, ptr %t_second, i64 %tk
  %s_third = getelementptr i8, ptr %s_second, i64 %sk
  %number = load REAL, ptr %s_third, align BYTES
  store REAL %number, ptr %t_third, align BYTES
  %k_next = add i64 %k, 1
  %k_more = icmp slt i64 %k_next, %d2
  br i1 %k_more, label %third, label %second_end
second_end:
  %j_next = add i64 %j, 1
  %j_more = icmp slt i64 %j_next, %d1
  br i1 %j_more, label %second, label %first_end
first_end:
  %i_next = add i64 %i, 1
  %i_more = icmp slt i64 %i_next, %d0
  br i1 %i_more, label %first, label %row_end
row_end:
  %r_next = add i64 %r, 1
  %r_more = icmp slt i64 %r_next, %rows
  br i1 %r_more, label %row, label %exit
exit:
  ret void
}

; Write a whole block past the caches: what is larger than they are would only be
; fetched to be overwritten.
define internal void @stream(ptr %to, ptr %from, i64 %bytes) noinline #0 {
entry:
  br label %turn
turn:
  %k = phi i64 [ 0, %entry ], [ %next, %turn ]
  %source = getelementptr i8, ptr %from, i64 %k
  %target = getelementptr i8, ptr %to, i64 %k
  %part = load <2 x i64>, ptr %source, align 16
  store <2 x i64> %part, ptr %target, align 16, !nontemporal !1
  %next = add i64 %k, 16
  %more = icmp slt i64 %next, %bytes
  br i1 %more, label %turn, label %exit
exit:
  ret void
}
!1 = !{i32 1}

; Room for `bytes` more in the list of records of a state (fallback.py); null without memory.
define internal ptr @record(ptr %state, i64 %bytes) noinline cold #0 {
entry:
  %records_at = getelementptr ptr, ptr %state, i64 1
  %room_at = getelementptr i64, ptr %state, i64 2
  %realloc_at = getelementptr ptr, ptr %state, i64 4
  %used = load i64, ptr %state
  %records = load ptr, ptr %records_at
  %room = load i64, ptr %room_at
  %failed = icmp slt i64 %used, 0
  br i1 %failed, label %none, label %check
check:
  %wanted = add i64 %used, %bytes
  %enough = icmp sle i64 %wanted, %room
  br i1 %enough, label %take, label %grow
grow:
  %double = shl i64 %wanted, 1
  %realloc = load ptr, ptr %realloc_at
  %moved = call ptr %realloc(ptr %records, i64 %double)
  %some = icmp ne ptr %moved, null
  br i1 %some, label %keep, label %none
keep:
  store ptr %moved, ptr %records_at
  store i64 %double, ptr %room_at
  br label %take
take:
  %list = phi ptr [ %records, %check ], [ %moved, %keep ]
  store i64 %wanted, ptr %state
  %at = getelementptr i8, ptr %list, i64 %used
  ret ptr %at
none:
  store i64 -1, ptr %state
  ret ptr null
}
