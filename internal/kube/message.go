// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/membership"
	"weir.dev/weir/internal/poolupdate"
)

// Limits of texts, in bytes. Kubernetes cuts or refuses longer events.
const (
	maxMessage = 1024
	maxCode    = 128
)

// leftOut is how many of the nodes that are left out a message names.
const leftOut = 5

// sentence makes text fit for an event or a condition: one line, no control
// characters, at most limit bytes.
func sentence(text string, limit int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= limit {
		return text
	}
	const more = "…"
	cut := limit - len(more)
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + more
}

// faultText is the error of an attempt in at most limit bytes. Azure's code is what
// people search for, so it survives the cut.
func faultText(f *fault.Fault, limit int) string {
	if f == nil {
		return "no reason was given"
	}
	text := strings.TrimRight(sentence(f.Error(), limit), ". ")
	code := sentence(f.Code, maxCode)
	if code == "" || strings.Contains(text, code) {
		return text
	}
	return sentence(code+": "+text, limit)
}

// levelMessage says that a pool is level, how many of its nodes leave, and which are left out.
func levelMessage(set membership.Set) string {
	text := "level with " + count(len(set.Addresses), "node")
	if len(set.Addresses) == 0 {
		text = "level with no nodes"
	}
	if n := len(set.Draining); n > 0 {
		text += fmt.Sprintf(", %d of them Down", n)
	}
	if len(set.Spared) > 0 {
		text += "; " + sparedMessage(set)
	}
	var out []string
	for _, a := range set.Absent[:min(len(set.Absent), leftOut)] {
		out = append(out, sentence(a.String(), maxMessage/8))
	}
	if n := len(set.Absent) - leftOut; n > 0 {
		out[len(out)-1] += fmt.Sprintf(" and %d more", n)
	}
	if set.Homeless > 0 {
		out = append(out, count(set.Homeless, "endpoint")+" without a node name")
	}
	if set.Unfit > 0 {
		out = append(out, count(set.Unfit, "slice")+" without IP addresses (address type FQDN)")
	}
	if len(out) > 0 {
		text += "; left out: " + strings.Join(out, "; ")
	}
	return text
}

// mayLandMessage says why the record holds more than the pool.
const mayLandMessage = "a write whose answer was lost may land yet, for the pool's etag does not keep it out: what it would bring stays on record, and is taken out when it lands"

// updatingMessage says what is about to be written.
func updatingMessage(i poolupdate.Intent) string {
	var doing []string
	if i.Add > 0 {
		doing = append(doing, fmt.Sprintf("adding %d", i.Add))
	}
	if i.Remove > 0 {
		doing = append(doing, fmt.Sprintf("removing %d", i.Remove))
	}
	if i.Alter > 0 {
		doing = append(doing, "changing the admin state of "+fmt.Sprint(i.Alter))
	}
	return strings.Join(doing, ", ") + fmt.Sprintf("; the pool held %s", count(i.Observed, "address"))
}

func retryingMessage(r poolupdate.Report) string {
	text := "the last attempt failed: " + faultText(r.Fault, maxMessage-160) + "; " +
		fmt.Sprintf("retry %d of %d follows at %s", r.RetriesUsed, r.Budget, stamp(r.RetryAt))
	if r.NextEligibleAt.After(r.At) {
		text += ", as Azure asked"
	}
	return text
}

// adminRetryingMessage is for a pool of which admin states are tried again, whatever else is.
func adminRetryingMessage(r poolupdate.Report) string {
	text := "the last attempt failed: " + faultText(r.Fault, maxMessage-160) + "; another to set the admin states follows at " + stamp(r.AdminRetryAt)
	if r.NextEligibleAt.After(r.At) {
		text += ", as Azure asked"
	}
	return text
}

// patience says what Azure asked for.
func patience(until time.Time) string { return "Azure asked for no call before " + stamp(until) }

// stamp is how times to come are written in messages.
func stamp(t time.Time) string { return whole(t).UTC().Format(time.RFC3339) }

// whole rounds up to the seconds that a status has: who goes by it is never early.
func whole(t time.Time) time.Time { return t.Add(time.Second - 1).Truncate(time.Second) }

func failedMessage(r poolupdate.Report) string {
	text := "the last attempt failed: " + faultText(r.Fault, maxMessage-220) + "; the next change of the members starts another"
	if r.NextEligibleAt.After(r.At) {
		text += ", though not before " + stamp(r.NextEligibleAt) + ", as Azure asked"
	}
	if !r.LookAt.IsZero() {
		text += ", and Weir tries again at " + stamp(r.LookAt)
	}
	return text
}

func removalFailedMessage(r poolupdate.Report) string {
	text := "the last attempt to take its addresses out of the pool failed: " + faultText(r.Fault, maxMessage-160) + "; another follows "
	if r.NextEligibleAt.After(r.At) {
		return text + "after " + stamp(r.NextEligibleAt) + ", as Azure asked"
	}
	return text + "within a minute"
}

// missingPool says what a stale attempt found missing.
func missingPool(r poolupdate.Report) (reason, why string) {
	where := r.Pool.LoadBalancer
	if r.Fault != nil && (r.Fault.Code == "ResourceNotFound" || r.Fault.Code == "ResourceGroupNotFound") {
		return v1alpha1.ReasonLoadBalancerNotFound,
			fmt.Sprintf("Azure has no load balancer %s in resource group %s of subscription %s", where.Name, where.ResourceGroup, where.SubscriptionID)
	}
	return v1alpha1.ReasonPoolNotFound, fmt.Sprintf("load balancer %s in resource group %s has no backend pool %s", where.Name, where.ResourceGroup, r.Pool.Name)
}

// removed says what became of our addresses now that nothing wants them.
func removed(st standing, left bool) (reason, why string) {
	reason, why = st.reason, st.why
	if reason == "" { // an active one that is being deleted
		reason, why = v1alpha1.ReasonUpdating, "this BackendPool is being deleted"
	}
	switch {
	case !st.taken:
		return reason, why + "; Weir wrote nothing to the pool"
	case left:
		return reason, why + "; its addresses are being removed from the pool"
	}
	return reason, why + "; its addresses were removed from the pool"
}

func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	if strings.HasSuffix(thing, "s") {
		return fmt.Sprintf("%d %ses", n, thing)
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
