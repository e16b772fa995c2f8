package transport

import "testing"

func TestDeeper(t *testing.T) {
	for text, want := range map[string]bool{
		"":                       false,
		"[[]]":                   false,
		"[[[]]]":                 true,
		`{"a":{"b":1}}`:          false,
		`{"a":{"b":[]}}`:         true,
		`["[[[[","\"[[[[",[]]`:   false,
		`["\\",[[]]]`:            true,
		`[[],[],[],[]]`:          false,
		`]]]]]][[[`:              false,
		`"[[[[[[`:                false,
		`{"a":"{{{","b":["]["]}`: false,
	} {
		if got := Deeper([]byte(text), 2); got != want {
			t.Errorf("Deeper(%s) = %v", text, got)
		}
	}
}
