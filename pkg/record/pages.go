package record

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// page is how many objects one LIST brings.
const page = 500

// Pages runs each list from its first page to its last, one list after the other. A
// list is given what to ask for, and returns where the next page continues, "" if
// there is none.
func Pages(lists ...func(metav1.ListOptions) (string, error)) error {
	for _, list := range lists {
		options := metav1.ListOptions{Limit: page}
		for {
			next, err := list(options)
			if err != nil {
				return err
			}
			if next == "" {
				break
			}
			options.Continue = next
		}
	}
	return nil
}
