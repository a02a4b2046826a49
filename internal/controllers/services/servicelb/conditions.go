// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/service"
)

// Condition types of a Service, named as in Gateway API.
const (
	// TypeAccepted is False while the Service is invalid.
	TypeAccepted = "weir.dev/Accepted"
	// TypeProgrammed is True once Azure is in sync; otherwise its reason is what is waited for.
	TypeProgrammed = "weir.dev/Programmed"
	// TypeSecurityGroup is False on a public Service of a cluster where Weir manages no security group; otherwise it is
	// absent.
	TypeSecurityGroup = "weir.dev/SecurityGroup"

	typeConflicts, typeLink = "contests", "link" // internal keys; the status store formats these conditions
)

// Reasons of TypeAccepted. ConditionReasonOpen: accepted, but any client may connect. ConditionReasonPartial: accepted without the
// invalid parts.
const (
	ConditionReasonAccepted = "Accepted"
	ConditionReasonInvalid  = "Invalid"
	ConditionReasonOpen     = ReasonNoEffect
	ConditionReasonPartial  = ReasonPartial
)

// Reasons of TypeProgrammed.
const (
	ConditionReasonProgrammed     = "Programmed"
	ConditionReasonNoEndpoints    = "NoEndpoints"
	ConditionReasonNotEnforced    = ReasonNotEnforced
	ConditionReasonNotAccepted    = "NotAccepted"
	ConditionReasonUpdating       = "Updating"
	ConditionReasonRetryAfter     = "RetryAfter"
	ConditionReasonRejected       = "Refused"
	ConditionReasonFailed         = "Failed"
	ConditionReasonConflict       = "Contested"
	ConditionReasonPoolFilling    = "PoolFilling"
	ConditionReasonPoolEmpty      = "PoolEmpty"
	ConditionReasonRemovalBlocked = "RemovalHeld"
	ConditionReasonDeferred       = "Deferred"
	ConditionReasonRetained       = "OtherClass"
	ConditionReasonLeaving        = "Leaving"
	ConditionReasonDryRun         = "DryRun"
	// ConditionReasonNotManaged is the reason of TypeSecurityGroup.
	ConditionReasonNotManaged = "NotManaged"
	// ConditionReasonMigrating takes precedence: the load balancer is being migrated from Basic to Standard.
	ConditionReasonMigrating = "Migrating"
)

// maxNamedResources bounds the resources that a condition names.
const maxNamedResources = 5

// StatusCondition is a condition of a Service; without a reason it is removed.
type StatusCondition struct {
	Type, Reason, Text string
}

// StatusUpdate is the status update of a Service: conditions and optionally addresses.
type StatusUpdate struct {
	Conditions   []StatusCondition
	HasAddresses bool
	Addresses    []netip.Addr
	// Changed is set for conditions that differ from those written last. The informer cache may be older and
	// already show them.
	Changed bool
}

func (r *Reconciler) writeConditions(ctx context.Context, s Service, st *State, c StatusUpdate) error {
	for _, v := range c.Conditions {
		c.Changed = st.Events.recordCondition(v) || c.Changed
	}
	if err := r.cfg.Store.UpdateConditions(ctx, s, c); err != nil {
		return err
	}
	for _, v := range c.Conditions {
		st.Events.lastConditions[v.Type] = v
	}
	return nil
}

// recordCondition reports whether a condition differs from the last one written. The written state is unknown until the
// request succeeds.
func (e *EventState) recordCondition(v StatusCondition) (changed bool) {
	if e.lastConditions == nil {
		e.lastConditions = map[string]StatusCondition{}
	}
	last, wrote := e.lastConditions[v.Type]
	e.lastConditions[v.Type] = StatusCondition{Text: "unknown until Azure responds"}
	return wrote && (last.Reason != v.Reason || !humanize.EqualMessages(last.Text, v.Text))
}

// IsTrue reports whether the condition is True.
func (s StatusCondition) IsTrue() bool {
	return s.Reason == ConditionReasonAccepted || s.Reason == ConditionReasonProgrammed || IsNotable(s.Reason)
}

// IsNotable reports whether a True condition has a reason that the user should know.
func IsNotable(reason string) bool {
	return reason == ConditionReasonOpen || reason == ConditionReasonPartial || reason == ConditionReasonNotEnforced || reason == ConditionReasonNoEndpoints
}

func clearedConditions() []StatusCondition {
	return []StatusCondition{{Type: TypeAccepted}, {Type: TypeProgrammed}, {Type: TypeSecurityGroup}}
}

func (e *EventState) recordValidity(d Desired) {
	e.isValidated, e.problems, e.ports, e.hasNoGroup = true, "", nil, d.HasNoGroup
	if len(d.Problems)+len(d.Flaws) > 0 {
		e.ports = invalidPorts(d)
	}
	if len(d.Problems) > 0 {
		e.problems = d.problemText()
	}
}

func invalidPorts(d Desired) map[service.PortRef]string {
	of := map[service.PortRef]string{}
	add := func(p service.Problem) {
		if port, reason := p.OfPort(); port.Port != 0 && of[port] == "" {
			of[port] = reason
		}
	}
	for _, p := range d.Problems {
		add(p)
	}
	for _, f := range d.Flaws {
		add(f.Problem)
	}
	return of
}

// currentConditions returns the conditions after a reconcile, without unknown ones: these keep their previous value.
func (st *State) currentConditions(s Service, class string, now time.Time) (conditions []StatusCondition) {
	switch managed := s.IsManaged(class); {
	case st.Placement.isGone, s.Deleting && !st.reportsRemoval(s):
		return nil // deleted with the Service
	case !managed && st.Placement.free: // already removed
		return nil
	case managed && st.Events.isValidated:
		conditions = append(conditions, st.Events.acceptedCondition())
		if st.Events.problems == "" {
			conditions = append(conditions, st.Events.groupCondition())
		}
	}
	if reason, text := st.programmedReason(s, class, now); reason != "" {
		conditions = append(conditions, StatusCondition{TypeProgrammed, reason, text})
	}
	return conditions
}

// reportsRemoval reports whether the condition of a deleted Service is worth a write: the removal fails or waits, or the
// condition shows an earlier failure.
func (st *State) reportsRemoval(s Service) bool {
	return st.Events.failure != "" || len(st.PoolWait.drains) > 0 || s.ProgrammedReason != "" && !StatusCondition{Reason: s.ProgrammedReason}.IsTrue()
}

func (e *EventState) acceptedCondition() StatusCondition {
	switch {
	case e.problems != "":
		return StatusCondition{TypeAccepted, ConditionReasonInvalid, e.problems}
	case e.unenforcedReason != "":
		return StatusCondition{TypeAccepted, ConditionReasonOpen, e.unenforcedReason}
	case e.flaws != "":
		return StatusCondition{TypeAccepted, ConditionReasonPartial, e.flaws}
	}
	return StatusCondition{TypeAccepted, ConditionReasonAccepted, "Azure supports everything that is requested"}
}

// groupCondition reports that Weir opens no security group for a public Service; Weir does not know whether another
// one admits clients.
func (e *EventState) groupCondition() StatusCondition {
	if !e.hasNoGroup {
		return StatusCondition{Type: TypeSecurityGroup}
	}
	return StatusCondition{TypeSecurityGroup, ConditionReasonNotManaged, "Weir opens no security group, because azure.json names no securityGroupName. " +
		"A Standard load balancer is closed until a network security group admits clients: allow the ports in the group of the nodes, or set securityGroupName"}
}

// programmedReason returns reason and message of TypeProgrammed; empty while unknown. A retry does not change it
// before its result.
func (st *State) programmedReason(s Service, class string, now time.Time) (reason, text string) {
	managed, t := s.IsManaged(class), st.Events
	switch {
	case managed && t.isValidated && t.problems != "":
		return ConditionReasonNotAccepted, "Its resources in Azure stay as they are: see the condition " + TypeAccepted
	case managed && s.DryRun && t.failure == "" && !st.Pending.Running:
		return ConditionReasonDryRun, "Nothing is written to Azure while it is only planned: the last event with reason " + ReasonDryRun + " says what would change"
	case st.Pending.Running && t.failure == "" && t.isAnnounced && managed:
		return ConditionReasonUpdating, st.Pending.provisioningText()
	case st.Pending.Running && (managed || t.failure != ""):
		return "", ""
	}
	switch condition := st.currentCondition(managed, now); condition {
	case ConditionReady:
		return st.warningReason(s)
	case ConditionConflict:
		return ConditionReasonConflict, "Another client keeps reverting what Weir writes: see the condition weir.dev/Contested"
	case ConditionLeaving:
		text = "It leaves its load balancer, and Azure still has resources of it"
		var waits []string
		for _, p := range st.PoolWait.drains {
			waits = append(waits, p.String())
		}
		if len(waits) > 0 {
			text += ": " + humanize.FormatList(waits, maxNamedResources)
		}
		return ConditionReasonLeaving, text
	case ConditionWaiting:
		return st.waitReason()
	default:
		return conditionReasons[condition], blockedText(condition) + t.lastWarning
	}
}

// provisioningText names the first resources of the running request.
func (p *Pending) provisioningText() string {
	const text = "not all of its resources are provisioned yet"
	if p.request == nil || p.request.Desired == nil {
		return text
	}
	names := []string{"load balancer " + p.request.On.Name}
	for _, f := range p.request.Desired.Frontends {
		if f.PublicIP != nil {
			names = append(names, "public IP "+f.PublicIP.ID.Name)
		}
	}
	for _, pool := range p.request.Desired.Pools {
		names = append(names, "backend pool "+pool.Name)
	}
	if link := p.request.Desired.Link; link != nil {
		names = append(names, strings.TrimSpace("Private Link Service "+link.Name))
	}
	return text + ": it needs " + humanize.FormatList(names, maxNamedResources)
}

// warningReason returns the reason and message of a Service in sync that the user should still know.
func (st *State) warningReason(s Service) (reason, text string) {
	switch {
	case st.EmptyPool.is:
		return ConditionReasonPoolEmpty, st.EmptyPool.messageText()
	case st.Events.lastNote != "":
		return ConditionReasonNotEnforced, st.Events.lastNote
	case st.Endpoints.empty:
		return ConditionReasonNoEndpoints, s.emptyText()
	}
	return ConditionReasonProgrammed, "Azure has everything that is requested"
}

var conditionReasons = map[Condition]string{ConditionRejected: ConditionReasonRejected, ConditionFailed: ConditionReasonFailed, ConditionRetained: ConditionReasonRetained, ConditionBlocked: ConditionReasonRemovalBlocked, ConditionDeferred: ConditionReasonDeferred}

func blockedText(condition Condition) string {
	if condition == ConditionBlocked {
		return "A person has to allow it, with the annotation " + AllowRemovalAnnotation + ", that it loses "
	}
	return ""
}

func (st *State) waitReason() (reason, text string) {
	switch {
	case st.Events.lastWarning != "":
		text = "Weir waits for Azure: "
		if at := st.Waiting.notBefore; !at.IsZero() {
			text = "Weir waits for Azure until " + humanize.FormatTime(at) + ": "
		}
		return ConditionReasonRetryAfter, text + st.Events.lastWarning
	case st.PoolWait.reason == waitMove:
		return ConditionReasonUpdating, "It moves to another load balancer; the former one serves until the new addresses are probed and published"
	case st.PoolWait.reason == waitFill:
		return ConditionReasonPoolFilling, "Its backend pools are filled before flows are sent there: their BackendPools say what keeps them"
	}
	return "", ""
}

func (r *Reconciler) updateConditions(ctx context.Context, s Service, st *State, now time.Time) error {
	if st.Events.isValidated && !st.Placement.isGone && s.IsManaged(r.cfg.Settings.Class) {
		if err := r.cfg.Store.RejectPorts(ctx, s, st.Events.ports); err != nil {
			return err
		}
	}
	verdicts := st.currentConditions(s, r.cfg.Settings.Class, now)
	if len(verdicts) == 0 || slices.Equal(verdicts, st.Events.writtenConditions) {
		return nil
	}
	return r.writeConditions(ctx, s, st, StatusUpdate{Conditions: verdicts})
}

// publishInSync writes the addresses of a Service in sync together with the final conditions, if these are certain,
// so that clients see both at once and one request suffices.
func (r *Reconciler) publishInSync(ctx context.Context, s Service, st *State, res loadbalancer.Result, now time.Time) error {
	c := StatusUpdate{HasAddresses: true, Addresses: st.Sync.addresses}
	if res.Link.Err == nil && len(res.Conflicts) == 0 {
		after := *st // the state that completion would leave
		after.Events.recordReady(res)
		after.Sync.recordInSync(res, st.Pending, now, r.cfg.Settings.ResyncPeriod)
		r.updateEndpoints(s, &after, now)
		c.Conditions = after.currentConditions(s, r.cfg.Settings.Class, now)
	}
	if err := r.writeConditions(ctx, s, st, c); err != nil {
		return err
	}
	st.Events.writtenConditions = c.Conditions
	return nil
}
