// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"slices"
	"time"
)

// Azure sends requests to Azure Resource Manager and follows what they begin. It sends a
// request again only where no second layer would do so, too.
type Azure interface {
	// Send sends one request and returns its answer, whatever its status. It waits first as
	// long as an earlier answer asks. An error says that no answer came; it carries a
	// *fault.Fault, which says whether the request may arrive all the same.
	Send(ctx context.Context, r Request) (Answer, error)
	// Follow waits until Azure is done with what an answer began. An error says that its end
	// is not known.
	Follow(ctx context.Context, a Answer) (End, error)
}

// Object is a JSON object.
type Object = map[string]any

// Request is one request.
type Request struct {
	Method string
	// Path is an ARM id, or the collection that is listed.
	Path string
	// Version is the api-version.
	Version string
	// Filter narrows a list; empty does not.
	Filter string
	// Link is the address of a list's next page, which replaces the three above.
	Link string
	// IfMatch and IfNoneMatch guard a write; empty guards nothing.
	IfMatch, IfNoneMatch string
	// Body is what is written; nil is nothing.
	Body Object
}

// Answer is what Azure answered.
type Answer struct {
	Status int
	// Codes are those of an error and of its details, outermost first.
	Codes []string
	// Message is for people, in one line.
	Message string
	// Body is what was shown; nil if nothing was.
	Body Object
	// Sent and At are when the request left and when the answer was there.
	Sent, At time.Time
	// Wait is how long Azure asks to wait, zero if it names no time.
	Wait time.Duration
	// Begun is what Follow needs; nil if nothing was begun.
	Begun any
}

// took reports whether Azure has taken the request.
func (a Answer) took() bool { return a.Status >= 200 && a.Status < 300 }

// gone reports whether Azure says that a resource group is not there. Any other 404 is none of
// its own.
func (a Answer) gone() bool {
	return a.Status == statusNotFound && slices.Contains(a.Codes, "ResourceGroupNotFound")
}

// End is how what was begun ended.
type End struct {
	// State is Succeeded, Failed or Canceled.
	State string
	Codes []string
	// Message is for people, in one line.
	Message string
	// Running is when it was last seen under way, zero if never. Over is when it was seen
	// to be over.
	Running, Over time.Time
}

// The states in which what was begun ends, and one in which a resource is meanwhile.
const (
	succeeded = "Succeeded"
	failed    = "Failed"
	canceled  = "Canceled"
	updating  = "Updating"
)

// The words of HTTP that a probe needs.
const (
	methodGet    = "GET"
	methodPut    = "PUT"
	methodDelete = "DELETE"

	statusBadRequest         = 400
	statusNotFound           = 404
	statusRequestTimeout     = 408
	statusConflict           = 409
	statusPreconditionFailed = 412
	statusTooManyRequests    = 429
	statusServerError        = 500
)
