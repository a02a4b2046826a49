// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// decodeStrict rejects unknown and duplicate fields.
func decodeStrict(doc []byte, into any) error {
	strict, err := kjson.UnmarshalStrict(doc, into)
	if err != nil {
		return err
	}
	return joinMessages(strict)
}

// joinErrors joins errors of an object; nil if there are none.
func joinErrors(errs field.ErrorList) error {
	items := make([]error, len(errs))
	for i, w := range errs {
		items[i] = w
	}
	return joinMessages(items)
}

const (
	// Values may be large, so an object's errors are limited in number and length.
	maxErrors      = 10
	maxErrorLength = 300
)

func joinMessages(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	var texts []string
	for _, err := range errs[:min(len(errs), maxErrors)] {
		text := []rune(err.Error())
		if len(text) > maxErrorLength {
			text = append(text[:maxErrorLength], '…')
		}
		texts = append(texts, string(text))
	}
	if len(errs) > maxErrors {
		texts = append(texts, "and more")
	}
	return errors.New(strings.Join(texts, "; "))
}
