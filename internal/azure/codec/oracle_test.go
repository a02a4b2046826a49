// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"
	"encoding/json"
)

// object is a JSON object as encoding/json decodes it.
type object = map[string]any

// readObject decodes a text, with numbers as written.
func readObject(text []byte) (body object, err error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	err = dec.Decode(&body)
	return body, err
}

// readOrigin decodes the text of an Origin.
func readOrigin(origin Document) (object, error) { return readObject(origin.Text) }
