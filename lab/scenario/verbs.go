// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"cmp"
	"slices"
)

// Verb documents a verb of the script language.
type Verb struct{ Name, Args, Does string }

// verb implements a step: run parses the arguments, checks them, and acts. Its result is added to
// the trace.
type verb struct {
	args, does string
	run        func(s *Stage, a *argReader) (string, error)
}

func allVerbs() map[string]verb {
	return map[string]verb{
		"cluster": {"[interval=D] [retries=N] [drift=D] [lease=D] [replicas=N] [share=N] [admin] [pipelined] [QUESTION=ANSWER …], then lines: nodes N | lb NAME [subscription=S] | pool LB/NAME [foreign=(IP, …)] [holds=(NODE, …)] [probe=D] | service NAME pools=(POOL, …) [nodes=(NODE, …)]",
			"adds nodes, load balancers, pools and Services; the first one starts the process and names the world; questions and answers are those of what is not known of Azure; pipelined allows writes of pools to overlap", doCluster},
		"scale":              {"SERVICE… nodes=(NODE, …)", "has the Services' ready endpoints run on these nodes", doScale},
		"drain":              {"NODE [to=NODE] [serving]", "moves all endpoints away from a node; serving leaves them there, terminating", doDrain},
		"node-lost":          {"NODE [back]", "removes a node from the cluster, or adds it again", doNodeLost},
		"taint":              {"NODE… [announced] [end]", "puts a taint of leaving nodes on nodes, or removes it; announced means only that Azure evicts them", doTaint},
		"replace":            {"NODE [same]", "puts a new node in the place of one of that name, with another address or the same", doReplace},
		"node-dead":          {"NODE [back]", "has a node's machine die, which only health probes notice, or come back", doNodeDead},
		"throttle":           {"[on=GET|PUT|any] [pool=POOL|lb=LB|whole=LB] [code=CODE[/DETAIL]] [retry-after=S] [by=D] [times=N] [for=D]", "has Azure answer 429, so much later", doThrottle},
		"conflict":           {"pool=POOL [add=IP] [remove=NODE] [down=NODE] [up=NODE] | pool=POOL|lb=LB|whole=LB answer=409|412 [times=N] [for=D]", "has another writer write the pool, or the admin state of an address in it, or win against the writes to come", doConflict},
		"lose-answer":        {"[on=GET|PUT|any] [pool=POOL|lb=LB|whole=LB] [unapplied] [times=N] [for=D] | late=D [status=N] [pool=POOL] [times=N]", "drops the connection, or has a proxy answer; a write was applied unless unapplied, or reaches Azure only so much later", doLoseAnswer},
		"fail":               {"[on=GET|PUT|any|operation|poll] [pool=POOL|lb=LB|whole=LB] [status=N] [code=CODE[/DETAIL]] [kept] [polls=N] [retry-after=S] [times=N] [for=D]", "has Azure answer with an error (to N polls of each write), or end an accepted write as failed, with what it wrote kept or taken back", doFail},
		"slow":               {"[on=GET|PUT|any] [pool=POOL|lb=LB|whole=LB] by=D [times=N] [for=D]", "has Azure take longer to answer", doSlow},
		"heal":               {"", "ends all faults and lags, and what others hold", doHeal},
		"delete-pool":        {"POOL…", "deletes pools in Azure", doDeletePool},
		"delete-lb":          {"LB…", "deletes load balancers in Azure, with their pools", doDeleteBalancer},
		"delete-service":     {"SERVICE…", "deletes Services; their BackendPools stay", doDeleteService},
		"kill":               {"[leader] [at=GET|PUT|poll|result|record|report|settle|any [pool=POOL] [nth=N] [after]]", "kills the process now, or when it makes that call or that write of the ledger: before it is sent, or after it was answered; leader has it end in good order, as when another is the leader, also when an attempt is settled", doKill},
		"create-backendpool": {"POOL service=SERVICE|nodes=(NODE, …)", "makes a BackendPool for a pool that has none: again, or one of nodes", doCreateBackendPool},
		"delete-backendpool": {"POOL…", "deletes BackendPools: they go when what is ours is out of their pools, or at once if they are paused", doDeleteBackendPool},
		"pause":              {"POOL… [end]", "pauses BackendPools, or ends that", doPause},
		"select":             {"POOL… nodes=(NODE, …)", "has BackendPools of nodes select these", doSelect},
		"exclude":            {"NODE [end]", "keeps a node out of all pools, or ends that", doExclude},
		"suspend":            {"D", "suspends the process's machine for so long, whatever is under way", doSuspend},
		"freeze":             {"", "has the process stand still, as by SIGSTOP; with two replicas the other leads once the leader's lease has run out", doFreeze},
		"thaw":               {"", "has frozen processes go on", doThaw},
		"lease":              {"take [steal] [for=D] | release | fail [applied] [times=N] [for=D] | slow by=D [for=D]", "another holder takes the resource lease, as soon as it is free or at once, or releases it; or requests for it fail, or take longer", doLease},
		"ledger":             {"fail [applied] [times=N] [for=D] | slow by=D [times=N] [for=D]", "has writes of the ledger fail, of which applied ones were made all the same; or what is recorded before a write of a pool arrive so much later", doLedger},
		"lock":               {"LB [for=D]", "has another part of the process hold the load balancer's lane", doLock},
		"stale":              {"SERVICE…|nodes [for=D] [by=D] [muted]", "delays updates of these until the end, or each by so much; muted delays events alone, the snapshot is up to date", doStale},
		"restart":            {"[dead]", "starts a process with an empty memory, which lists the cluster; dead does so only if none runs", doRestart},
		"clock":              {"D", "advances the time", doClock},
		"expect":             {"in sync [POOL…] | calm | pool=POOL holds=(NODE, …) | events=(SERVICE:WORD, …) | calls=N | most-calls=N | queue=N | parked=POOL | success=N failure=N", "fails the script unless it is so", doExpect},
		"events":             {"", "prints the events of Services since the last events or expect events", doEvents},
		"flows":              {"", "prints which members take new flows in pools with a probe, and what was misdirected so far", doFlows},
		"calls":              {"[when]", "counts the calls since the last calls or expect calls; when lists the reads that begin an attempt", doCalls},
		"status":             {"", "prints what each pool holds, and the queue", doStatus},
		"unreachable":        {"refused|silent [lb=LB] [for=D]", "no request reaches Azure: no connection can be made, or nothing is ever answered, also after the end", doUnreachable},
	}
}

// Verbs returns the script language, sorted by name.
func Verbs() []Verb {
	var verbs []Verb
	for name, v := range allVerbs() {
		verbs = append(verbs, Verb{Name: name, Args: v.args, Does: v.does})
	}
	slices.SortFunc(verbs, func(a, b Verb) int { return cmp.Compare(a.Name, b.Name) })
	return verbs
}
