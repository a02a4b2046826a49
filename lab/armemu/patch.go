// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"errors"
	"net/http"
)

// patch changes the tags of a resource at once, with one new etag. A running operation continues
// and does not affect the tags (assumed).
func (e *Emulator) patch(x *exchange) *Problem {
	id := x.route.id
	agg := e.aggregates[id.rootKey()]
	body, err := x.object()
	if err == nil {
		err = checkTags(body)
	}
	if err != nil {
		return badJSON(err)
	}
	if problem := e.refuseOverlap(x, agg); problem != nil {
		return problem
	}
	if tags, given := body["tags"]; given {
		agg.body = tagged(agg.body, tags)
		if agg.op != nil && agg.op.before != nil {
			agg.op.before = tagged(agg.op.before, tags)
		}
	}
	e.retag(agg)
	x.call.EtagAfter = agg.etag
	x.status, x.body = http.StatusOK, agg.render(id, e.index())
	return nil
}

// tagged returns the body with these tags; null removes them.
func tagged(body fields, tags any) fields {
	if tags == nil {
		return without(body, "tags")
	}
	return with(body, "tags", tags)
}

// checkTags rejects a PATCH of anything but tags, as Azure does.
func checkTags(body fields) error {
	if err := wantObject(body, "tags", "patch"); err != nil {
		return err
	}
	for key := range body {
		if key != "tags" {
			return errors.New("Could not find member '" + key + "' on object of type 'TagsObject'")
		}
	}
	for key := range object(body, "tags") {
		if err := wantText(object(body, "tags"), key, "tags"); err != nil {
			return err
		}
	}
	return nil
}

func badJSON(err error) *Problem {
	return &Problem{
		Status: http.StatusBadRequest, Code: "InvalidRequestFormat", Message: "Cannot parse the request.",
		Details: []Detail{{Code: "InvalidJson", Message: err.Error()}},
	}
}
