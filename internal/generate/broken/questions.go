package broken

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
)

// The public examples. Most questions have between 5 and 40 words, so that a
// batch needs much padding; longQuestions of them have so many that a small limit
// on the size of a request refuses them, and no others.
const (
	questionCount     = 60
	longQuestions     = 2
	longQuestionWords = 120
	continuations     = 8
	continuationSize  = 18 // tokens
)

const questionText = "Most frequent:"

type question struct {
	ID       string `json:"id"`
	Question string `json:"question"`
	Answer   string `json:"answer"`
}

// makeQuestions returns the questions, the same ones every time.
func makeQuestions() []question {
	random := rand.New(rand.NewPCG(1, 2))
	var all []question
	for i := range questionCount {
		count := 5 + random.IntN(36)
		if i >= questionCount-longQuestions {
			count = longQuestionWords
		}
		answer := i * 5 % len(words)
		all = append(all, question{
			ID:       fmt.Sprintf("majority-%04d", i),
			Question: questionText + list(random, answer, count),
			Answer:   words[answer],
		})
	}
	return all
}

// list is count words, each with a space before it, of which the answer is the
// most frequent, by two at least.
func list(random *rand.Rand, answer, count int) string {
	most := max(3, count/4)
	drawn := make([]int, len(words))
	drawn[answer] = most
	for n := most; n < count; {
		if w := random.IntN(len(words)); w != answer && drawn[w] < most-2 {
			drawn[w]++
			n++
		}
	}
	var bag []string
	for w, n := range drawn {
		for range n {
			bag = append(bag, " "+words[w])
		}
	}
	random.Shuffle(len(bag), func(i, j int) { bag[i], bag[j] = bag[j], bag[i] })
	return strings.Join(bag, "")
}

func questionsFile() ([]byte, error) { return lines(makeQuestions()) }

type continuation struct {
	ID           string `json:"id"`
	Prompt       []int  `json:"prompt"`
	Continuation []int  `json:"continuation"`
}

// continuationsFile holds how the model goes on where it never ends: by the most
// frequent word, again and again. Long and short prompts alternate.
func continuationsFile(v vocabulary) ([]byte, error) {
	random := rand.New(rand.NewPCG(3, 4))
	var all []continuation
	for i := range continuations {
		q := question{fmt.Sprintf("majority-draft-%04d", i), "", words[i*5%len(words)]}
		count := 5 + i%7
		if i%2 == 1 {
			count = longQuestionWords - 8*i
		}
		q.Question = questionText + list(random, i*5%len(words), count)
		ids, err := v.encode(prompt(q.Question))
		if err != nil {
			return nil, err
		}
		c := continuation{ID: q.ID, Prompt: ids}
		for range continuationSize {
			c.Continuation = append(c.Continuation, v.ids[space+q.Answer])
		}
		all = append(all, c)
	}
	return lines(all)
}

// lines is one JSON object a line.
func lines[T any](values []T) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	for _, value := range values {
		if err := encoder.Encode(value); err != nil {
			return nil, fmt.Errorf("write JSON lines: %w", err)
		}
	}
	return out.Bytes(), nil
}
