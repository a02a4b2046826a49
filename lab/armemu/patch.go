// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"errors"
	"net/http"
)

// patchTags takes effect at once, with one new etag, whatever becomes of a running operation (assumed).
func (e *Emulator) patchTags(x *exchange) *Problem {
	id := x.route.id
	agg := e.aggregates[id.rootKey()]
	body, err := x.decodeObject()
	if err == nil {
		err = validateTags(body)
	}
	if err != nil {
		return badJSON(err)
	}
	if problem := e.rejectOverlap(x, agg); problem != nil {
		return problem
	}
	if tags, given := body["tags"]; given {
		agg.body = tagged(agg.body, tags)
		if agg.op != nil && agg.op.before != nil {
			agg.op.before = tagged(agg.op.before, tags)
		}
	}
	e.renewEtag(agg)
	x.call.EtagAfter = agg.etag
	x.status, x.body = http.StatusOK, agg.renderResource(id, e.references())
	return nil
}

func tagged(body fields, tags any) fields {
	if tags == nil {
		return withoutFields(body, "tags")
	}
	return withField(body, "tags", tags)
}

// validateTags rejects everything but tags, as Azure does in a PATCH.
func validateTags(body fields) error {
	if err := requireObject(body, "tags", "patch"); err != nil {
		return err
	}
	for key := range body {
		if key != "tags" {
			return errors.New("Could not find member '" + key + "' on object of type 'TagsObject'")
		}
	}
	for key := range objectField(body, "tags") {
		if err := requireString(objectField(body, "tags"), key, "tags"); err != nil {
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
