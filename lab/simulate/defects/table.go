// SPDX-License-Identifier: Apache-2.0

package main

// defect is a mistake that somebody could make: in a file, an old text, which occurs
// there once, becomes a new one.
type defect struct{ name, file, old, new string }

const (
	poolupdate = "internal/poolupdate/"
	azure      = "internal/azure/"
	lease      = "internal/lease/"
)

// defects are one a line of thought: the queue, what an attempt writes, what becomes of
// it, drift, time, Azure's answers, the locks.
func defects() []defect {
	return []defect{
		{"a requeue is dropped", poolupdate + "queue.go", "q.hold(t.pool, w, coalesce(requeue, w.ops...))", "q.hold(t.pool, w, coalesce(requeue[:len(requeue)/2], w.ops...))"},
		{"what comes during an attempt is forgotten", poolupdate + "queue.go", "q.hold(t.pool, w, coalesce(requeue, w.ops...))", "q.hold(t.pool, w, requeue)"},
		{"a retried operation stands for a fresh one", poolupdate + "operation.go", "return o.fresh() && p.fresh() && o.Ref", "return p.fresh() && o.Ref"},
		{"known level while an attempt is under way", poolupdate + "queue.go", "w != nil && !w.inFlight && len(w.ops) == 0", "w != nil && len(w.ops) == 0"},
		{"relevance is not checked again after an attempt", poolupdate + "conclude.go", "\tops = l.relevant(ops)\n\tif !r.directed() && ctx", "\tif !r.directed() && ctx"},
		{"all that is found is ours", poolupdate + "attempt.go", "if want.Ours(a.IP) {", "if want.Ours(a.IP) || true {"},
		{"what is found at first is never ours", poolupdate + "attempt.go", "if want.Ours(a.IP) {", "if want.Ours(a.IP) && false {"},
		{"it is recorded after the write", poolupdate + "attempt.go", "if recorded.Taken && len(has.written) == before &&", "if recorded.Taken || len(has.written) == before &&"},
		{"the ledger is trimmed before the write", poolupdate + "attempt.go", "Written: slices.SortedFunc(maps.Keys(has.written), netip.Addr.Compare),", "Written: slices.DeleteFunc(slices.SortedFunc(maps.Keys(has.written), netip.Addr.Compare), func(ip netip.Addr) bool { return !slices.Contains(sortedIPs(r.wanted), ip) }),"},
		{"addresses that are not seen are forgotten", poolupdate + "apply.go", "c.unseen = missing(has, want)", "c.unseen = false"},
		{"a write whose fate is unknown is forgotten", poolupdate + "conclude.go", "h.lost, h.kept = r.lost, r.kept", "h.lost, h.kept = \"\", r.kept"},
		{"the gates are asked before the lane is free", poolupdate + "lane.go", "\tif l.lock(ctx) != nil {\n\t\treturn obstacle{}\n\t}\n\tdefer l.unlock()\n\tasked := time.Now()\n\tpool, ok, _ := l.queue.next(asked, l.cfg.Interval) // whoever held the lane may have carried some along\n\tif !ok {\n\t\treturn obstacle{}\n\t}\n\tif met = l.gate(); !met.askAt.IsZero() {\n\t\treturn met\n\t}\n", "\tasked := time.Now()\n\tif met = l.gate(); !met.askAt.IsZero() {\n\t\treturn met\n\t}\n\tif l.lock(ctx) != nil {\n\t\treturn obstacle{}\n\t}\n\tdefer l.unlock()\n\tpool, ok, _ := l.queue.next(asked, l.cfg.Interval) // whoever held the lane may have carried some along\n\tif !ok {\n\t\treturn obstacle{}\n\t}\n"},
		{"success is believed without a look", poolupdate + "attempt.go", "if !todo.shownBy(namedAs(shown, todo.next)) {", "if false {"},
		{"a failed state counts as level", poolupdate + "fence.go", "\tcase observed.Provisioning == lb.Failed:\n", ""},
		{"a write under way counts as level", poolupdate + "fence.go", "case observed.Provisioning == lb.Updating:", "case false:"},
		{"a retry is counted twice", poolupdate + "settle.go", "op.retryCount++", "op.retryCount += 2"},
		{"a retry is not counted", poolupdate + "settle.go", "op.retryCount++", "op.retryCount += min(1, maxRetries-1-op.retryCount)"},
		{"Retry-After is ignored once", poolupdate + "conclude.go", "retryAt = r.fault.RetryAt", "if retryAt = r.fault.RetryAt; ops[0].retryCount == 0 {\n\t\t\tretryAt = time.Time{}\n\t\t}"},
		{"a fresh operation takes a parked one along", poolupdate + "admission.go", "return later(g.parkedUntil, g.history.notBefore) }", "if g.fresh {\n\t\treturn time.Time{}\n\t}\n\treturn later(g.parkedUntil, g.history.notBefore)\n}"},
		{"a Service is told twice", poolupdate + "settle.go", "!slices.Contains(v.told[w], to) {", "!slices.Contains(v.told[wordNone], to) {"},
		{"nobody is told that it is good again", poolupdate + "settle.go", "bad && (outcome == Unchanged || outcome == Written)", "bad && outcome == Stale"},
		{"a stale pool is a failure", poolupdate + "settle.go", "Stale:     {},", "Stale:     {left: disposition{tell: wordFailed}, spent: disposition{tell: wordFailed}},"},
		{"a look for drift that is put off is lost", poolupdate + "queue.go", "w.driftDue = w.driftDue || slices", "w.driftDue = w.driftDue && slices"},
		{"drift repair looks once", poolupdate + "drift.go", "\t\t\tw.driftAt = driftAfter(key, now, q.driftPeriod)\n\t\t}", "\t\t\tw.driftAt = now.Add(1000 * time.Hour)\n\t\t}"},
		{"drift repair tells the same again", poolupdate + "settle.go", "if p.again && d.tell", "if !p.again && d.tell"},
		{"a lane sleeps over an operation", poolupdate + "lanes.go", "\t\tif l.queue.add(op, now) {", "\t\tif l.queue.add(op, now) && l.queue.depth < 2 {"},
		{"the pace of retries is off", poolupdate + "admission.go", "return later(t, g.history.lastAttempt.Add(interval))", "return later(t, g.history.lastAttempt)"},
		{"the lease comes before the lane", poolupdate + "lane.go", "\tif l.lock(ctx) != nil {\n\t\treturn obstacle{}\n\t}\n\tdefer l.unlock()\n\tasked := time.Now()\n\tpool, ok, _ := l.queue.next(asked, l.cfg.Interval) // whoever held the lane may have carried some along\n\tif !ok {\n\t\treturn obstacle{}\n\t}\n\tif met = l.gate(); !met.askAt.IsZero() {\n\t\treturn met\n\t}\n\tvalid := func() bool { return true }\n\tif l.cfg.Lease != nil {\n\t\theld, leave, err := l.cfg.Lease.Enter(ctx)\n\t\tif err != nil {\n\t\t\treturn obstacle{askAt: time.Now().Add(l.cfg.Interval), cause: CauseLease, why: err.Error()}\n\t\t}\n\t\tdefer leave()\n\t\tvalid = held\n\t}\n", "\tvalid := func() bool { return true }\n\tif l.cfg.Lease != nil {\n\t\theld, leave, err := l.cfg.Lease.Enter(ctx)\n\t\tif err != nil {\n\t\t\treturn obstacle{askAt: time.Now().Add(l.cfg.Interval), cause: CauseLease, why: err.Error()}\n\t\t}\n\t\tdefer leave()\n\t\tvalid = held\n\t}\n\tif l.lock(ctx) != nil {\n\t\treturn obstacle{}\n\t}\n\tdefer l.unlock()\n\tasked := time.Now()\n\tpool, ok, _ := l.queue.next(asked, l.cfg.Interval) // whoever held the lane may have carried some along\n\tif !ok {\n\t\treturn obstacle{}\n\t}\n\tif met = l.gate(); !met.askAt.IsZero() {\n\t\treturn met\n\t}\n"},
		{"a lease is valid after its end", lease + "hold.go", "h.end.Sub(now) > term/3", "h.end.Sub(now) > -term"},
		{"the lane is not locked", poolupdate + "lane.go", "\tif l.lock(ctx) != nil {\n\t\treturn obstacle{}\n\t}\n\tdefer l.unlock()\n", ""},
		{"the lease is not checked before a write", poolupdate + "attempt.go", "if !t.valid() {", "if false && !t.valid() {"},
		{"the lease is never given back", lease + "hold.go", "if err := s.release(); err != nil {\n\t\ts.log.Warn(\"the resource lease could not be released", "if err := error(nil); err != nil {\n\t\ts.log.Warn(\"the resource lease could not be released"},
		{"no breath after a turn", lease + "shared.go", "breath = 5 * time.Second", "breath = time.Duration(0)"},
		{"turns have no end", lease + "shared.go", "turn = time.Minute", "turn = 1000 * time.Hour"},
		{"a lease that is lost counts on", lease + "hold.go", "\t\th.lost = held\n", "\t\t_ = held\n"},
		{"no If-Match", azure + "write.go", "return http.Header{\"If-Match\": {etag}}", "return nil"},
		{"writes to Azure do not ask whether this process leads", azure + "options.go", "fenced{opts.Fence}", "fenced{nil}"},
		{"gates learn of reads alone", azure + "gate.go", "g.close(quotaGate(c.id.SubscriptionID, c.write()), closedGate", "g.close(quotaGate(c.id.SubscriptionID, false), closedGate"},
		{"a lock closes no gate", azure + "gate.go", "case code == lockCode && balancer:", "case code == lockCode && balancer && false:"},
		{"the SDK's own retries do not ask the gates", azure + "gate.go", "func (g gateOfRetries) Do(req *policy.Request) (*http.Response, error) {\n\tif err := g.pass(callOf(req.Raw().Context())); err != nil {", "func (g gateOfRetries) Do(req *policy.Request) (*http.Response, error) {\n\tif err := g.pass(nil); err != nil {"},
		{"lost answers to writes are terminal", azure + "fault.go", "unknown := late || c.followsUp() || c.write() && c.sent.Load()", "unknown := late || c.followsUp()"},
		{"any 404 is stale", azure + "fault.go", "\t}\n\treturn false\n}\n\n// namesTarget", "\t}\n\treturn true\n}\n\n// namesTarget"},
		{"a poll that is throttled ends the wait", azure + "wait.go", "case throttled != nil && !tooLate(ctx, throttled):", "case throttled != nil && tooLate(ctx, throttled):"},
		{"polls end in a stale pool", azure + "fault.go", "case c.followsUp(), c.write() && success:", "case c.write() && success:"},
		{"a Retry-After in seconds is milliseconds", "internal/backoff/retryafter.go", "{\"Retry-After\", time.Second, true}", "{\"Retry-After\", time.Millisecond, true}"},
		{"a 409 is terminal", "internal/fault/classify.go", "Retriable, \"conflict\",", "Terminal, \"conflict\","},
		{"an operation that was overtaken is terminal", "internal/fault/classify.go", "Retriable, \"superseded\",", "Terminal, \"superseded\","},
		{"back-off doubles without an end", "internal/backoff/doubling.go", "return min(delay, d.Max)", "return delay << n"},
		{"a 412 is terminal", "internal/fault/classify.go", "Retriable, reasonOvertaken,", "Terminal, reasonOvertaken,"},
		{"a Retry-After dies with the operation that met it", poolupdate + "conclude.go", "h.notBefore = later(h.notBefore, retryAt)", "h.notBefore = later(h.notBefore, time.Time{})"},
		{"a Retry-After is forgotten if its Service went meanwhile", poolupdate + "conclude.go", "\t\tl.queue.done(t, nil, h, nil, nil)\n\t\treturn\n\t}\n\tv :=", "\t\tl.queue.done(t, nil, t.history, nil, nil)\n\t\treturn\n\t}\n\tv :="},
		{"a pause forgets Retry-After", poolupdate + "lanes.go", "func(op Operation) bool { return op.Ref == ref })", "func(op Operation) bool {\n\t\t\tif op.Ref != ref {\n\t\t\t\treturn false\n\t\t\t}\n\t\t\tl.queue.pools[op.Pool.Key()].history.notBefore = time.Time{}\n\t\t\treturn true\n\t\t})"},
		{"a restart forgets Retry-After", poolupdate + "queue.go", "\tw.history.notBefore = later(w.history.notBefore, op.NotBefore)\n", ""},
		{"a look for drift ignores Retry-After", poolupdate + "admission.go", "\t}\n\treturn later(t, g.firstQueued)", "\t}\n\treturn g.firstQueued"},
		{"a look for drift goes before changes", poolupdate + "admission.go", "looksWait*interval:\n\t\treturn 2\n", "looksWait*interval:\n\t\treturn -1\n"},
		{"a retry never becomes overdue", poolupdate + "admission.go", "case now.Sub(g.ready) >= interval, g.urgent", "case now.Sub(g.ready) >= interval && !g.retry, g.urgent"},
		{"passes do not come back", poolupdate + "admission.go", "back := min(int(now.Sub(p.refill)/interval), p.taken)", "back := 0"},
		{"a postponed attempt is told of", poolupdate + "settle.go", "Postponed: {\n\t\tleft: disposition{keep: true}", "Postponed: {\n\t\tleft: disposition{keep: true, tell: wordRetrying}"},
		{"what was given up is forgotten", poolupdate + "conclude.go", "h.gaveUp = gaveUpOn(r)", "h.gaveUp = \"\""},
		{"a stop between answer and requeue is reported", poolupdate + "conclude.go", "if !r.directed() && ctx.Err() != nil {", "if false {"},
		{"a lost write is not fenced off", poolupdate + "fence.go", "sameEtag := r.lost != \"\" && r.lost == observed.Etag", "sameEtag := false"},
		{"the ledger is never trimmed", poolupdate + "attempt.go", "r.written, r.down = sortedIPs(want.Addresses), sorted(todo.down)\n", "r.written, r.down = slices.SortedFunc(maps.Keys(has.written), netip.Addr.Compare), sorted(todo.down)\n"},
		{"an attempt has no end", poolupdate + "attempt.go", "attemptDeadline = 10 * time.Minute", "attemptDeadline = 1000 * time.Hour"},
		{"a pool that was let go is remembered", poolupdate + "queue.go", "\t\tdelete(q.pools, pool)\n", ""},
		{"the gates are not asked again after a wait for the lease", poolupdate + "lane.go", "if time.Since(asked) > leaveLasts {", "if time.Since(asked) > 1000*leaveLasts {"},
		{"a gate opens earlier when a later answer names less", azure + "gate.go", "if !gate.until.After(g.closed[key].until) {", "if false {"},
		{"turns after a gate are not paced", azure + "turns.go", "if turn.After(now) {", "if false {"},
		{"a write that the SDK sent twice is decided", azure + "fault.go", "a := fault.Answer{MayLand: c.passedOn.Load(), Status", "a := fault.Answer{Status"},
		{"polls meet the gates", azure + "gate.go", "if c == nil || c.followsUp() {", "if c == nil {"},
		{"the lease's term counts from the answer", lease + "hold.go", "\tend = time.Now().Add(s.term)\n\treturn end, s.holder.Acquire(ctx)\n", "\terr = s.holder.Acquire(ctx)\n\treturn time.Now().Add(s.term), err\n"},
		{"a write of all leaves the others out of force", poolupdate + "wholeend.go", "l.queue.lookAtOthers(writes, time.Now())", "l.queue.lookAtOthers(writes, time.Now().Add(1000*time.Hour))"},
		{"parked pools take part in writes of all", poolupdate + "together.go", "!g.looks() && !w.history.apart && may.lets(g) && (", "!g.looks() && !w.history.apart && may.lets(g) && (len(w.ops) > 0 || "},
		{"Down is not taken back", poolupdate + "apply.go", "case isDown && byUs && !toBe:", "case isDown && byUs && !toBe && len(down) > 1000:"},
		{"a node that leaves joins as if it did not", poolupdate + "apply.go", "if has.down != nil && a.AdminState == lb.Down {", "if has.down != nil && a.AdminState == lb.None {"},
		{"what others set Down is taken back", poolupdate + "apply.go", "case isDown && byUs && !toBe:", "case isDown && !toBe:"},
		{"Down is recorded after the write", poolupdate + "attempt.go", "down := sorted(slices.AppendSeq(slices.Concat(recorded.Down, todo.downed), maps.Keys(has.down)))", "down := sorted(slices.AppendSeq(slices.Clone(recorded.Down), maps.Keys(has.down)))"},
		{"a change of admin states that fails is dropped", poolupdate + "settle.go", "\t\tadmin: disposition{keep: true, yield: true}, carried: disposition{keep: true},\n\t},\n\tTerminal", "\t\tcarried: disposition{keep: true},\n\t},\n\tTerminal"},
		{"a write of the members resets admin states", poolupdate + "apply.go", "\t\t\ta.AdminState = c.direct(a, state, has.down)\n", "\t\t\tc.direct(a, state, has.down)\n\t\t\ta.AdminState = \"\"\n"},
	}
}
